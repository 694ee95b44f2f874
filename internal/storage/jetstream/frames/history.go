package frames

import "github.com/eventyard/eventyard/internal/storage/eventlog"

// historyPoints is how many frames that counted a fold remembers, to compare bases with. A base
// that is older is not checked; a writer's base is as old as its frame was on its way.
const historyPoints = 64

// point is the next number as of a sequence.
type point struct {
	at   StreamSeq
	next eventlog.Sequence
}

// history is the recent past of a fold.
type history struct {
	points []point // rising; the first is where the fold began, or what is left of its past
	agreed point   // the newest that another's base agreed with
}

func newHistory(begin point) history {
	return history{points: []point{begin}, agreed: begin}
}

func (h *history) add(p point) {
	if len(h.points) == historyPoints { // half is dropped at once, so that most frames move nothing
		h.points = h.points[:copy(h.points, h.points[historyPoints/2:])]
	}
	h.points = append(h.points, p)
}

// agrees compares the base of the frame at a sequence with what this fold knows. A base that is not
// before its own frame was folded from a stream that has since lost its end.
func (h *history) agrees(at StreamSeq, b Base) bool {
	if b.Seq >= at {
		return false
	}
	for i := len(h.points) - 1; i >= 0; i-- {
		p := h.points[i]
		if p.at > b.Seq {
			continue
		}
		if p.next == b.Next && p.at > h.agreed.at {
			h.agreed = p
		}
		return p.next == b.Next
	}
	return true
}
