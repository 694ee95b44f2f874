package frames

import (
	"slices"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Seen is a frame that the partition's fold has passed.
type Seen struct {
	At      StreamSeq
	Header  Header
	Verdict Verdict
}

// Acknowledged: the storage says that the frame is stored, at this sequence.
func (w *Writer) Acknowledged(id FrameID, at StreamSeq) {
	i := w.find(id)
	if i < 0 || w.mode != open {
		return // a late one; the fence decides
	}
	w.flights[i].acked = at
	if !w.rising() {
		w.doubt()
	}
	w.confirm()
}

// Failed: the storage has refused the frame, or not answered in time.
func (w *Writer) Failed(id FrameID) {
	if w.find(id) >= 0 {
		w.doubt()
	}
}

// FenceAcknowledged: the storage says that the fence is stored, at this sequence.
func (w *Writer) FenceAcknowledged(id FrameID, at StreamSeq) {
	if w.mode == inDoubt && w.fence.id == id {
		w.fence.acked = at
		w.settle()
	}
}

// FenceFailed: the storage has refused the fence, or not answered in time.
func (w *Writer) FenceFailed(id FrameID) {
	if w.mode == inDoubt && w.fence.id == id {
		w.sendFence()
	}
}

// Folded: the partition's fold has come to upTo, a sequence of the stream. Seen are the frames that
// it has passed since the last call, in order; those of other writers may be left out, and are not
// looked at. None of this writer's may be missing: where the fold has passed over a hole, GiveUp
// comes before.
func (w *Writer) Folded(upTo StreamSeq, seen []Seen) {
	for i := range seen {
		if seen[i].Header.Writer == w.id {
			w.see(&seen[i])
		}
	}
	w.folded = max(w.folded, upTo)
	w.confirm()
	w.settle()
}

// GiveUp answers all that is submitted: what is on its way is Uncertain, the rest Unsent. For
// batches that have waited too long, and where the fold has passed over a hole, so that what became
// of a frame cannot be known. Nothing of it is sent again; what is submitted later goes behind a
// fence, if there is need of one.
func (w *Writer) GiveUp() {
	for i := range w.flights {
		if f := &w.flights[i]; !f.abandoned {
			f.abandoned = true
			w.answerAll(f.content, Uncertain)
		}
	}
	w.answerAll(w.queue, Unsent)
	w.queue, w.queueBytes = nil, 0
	if len(w.flights) > 0 {
		w.doubt()
	}
}

// see takes notice of a frame with this writer's id.
func (w *Writer) see(s *Seen) {
	switch {
	case s.Header.Kind == KindFence && s.Verdict.Outcome == Fenced:
		w.highest = max(w.highest, s.Header.Epoch)
		switch {
		case s.Header.Epoch.Salt() != w.salt:
			w.displaced()
		case s.Header.Epoch == w.fence.epoch:
			w.fence.held = true
		}
	case s.Header.Kind == KindData && s.Header.Epoch == w.epoch && w.mode != lost:
		i := slices.IndexFunc(w.flights, func(f flight) bool { return f.q == s.Header.Q })
		if i < 0 || w.flights[i].verdict.Outcome == Counted {
			return // one that the stream has twice
		}
		if s.Verdict.Outcome == Counted {
			w.flights[i].verdict = s.Verdict
			return
		}
		w.doubt() // it may count yet, should it come once more behind what is missing
	}
}

// displaced: another's fence has held. It matters unless it lies before this writer's own.
func (w *Writer) displaced() {
	if w.mode == lost || w.claiming && !w.fence.held {
		return
	}
	w.resolve(func(f *flight) { w.answerAll(f.content, Displaced) })
	w.answerAll(w.queue, Displaced)
	w.queue, w.queueBytes, w.mode = nil, 0, lost
}

// doubt begins with a fence. In doubt already, the one under way will do.
func (w *Writer) doubt() {
	if w.mode == open {
		w.mode = inDoubt
		w.sendFence()
	}
}

func (w *Writer) sendFence() {
	w.lastID++
	w.highest = w.highest.After(w.salt)
	w.fence = fenceFlight{id: w.lastID, epoch: w.highest}
	w.out.Fences = append(w.out.Fences, SendFence{ID: w.lastID, Header: Header{Kind: KindFence, Writer: w.id, Epoch: w.highest}})
}

// settle ends the doubt once the fold has reached a fence that was acknowledged. One that has not
// held is followed by the next: it was stale, or lower than another's claim, or lies in a hole.
func (w *Writer) settle() {
	if w.mode != inDoubt || w.fence.acked == 0 || w.fence.acked > w.folded {
		return
	}
	if !w.fence.held {
		w.sendFence()
		return
	}
	var again []submitted
	w.resolve(func(f *flight) { again = append(again, f.content...) })
	for i := range again {
		w.queueBytes += again[i].batch.Bytes()
	}
	w.queue = append(again, w.queue...)
	w.mode, w.claiming, w.epoch, w.q, w.confirmed = open, false, w.fence.epoch, 0, w.fence.acked
}

// resolve empties the window behind a fence: what has counted is stored, the rest is void for ever.
func (w *Writer) resolve(void func(*flight)) {
	for i := range w.flights {
		f := &w.flights[i]
		switch {
		case f.abandoned:
		case f.verdict.Outcome == Counted:
			w.stored(f)
		default:
			void(f)
		}
	}
	clear(w.flights)
	w.flights = w.flights[:0]
}

// confirm answers the frames at the front of the window that are acknowledged and counted.
func (w *Writer) confirm() {
	if w.mode != open {
		return
	}
	done := 0
	for ; done < len(w.flights); done++ {
		f := &w.flights[done]
		if f.acked == 0 || f.verdict.Outcome != Counted {
			break
		}
		w.stored(f)
		w.confirmed = f.acked
	}
	w.flights = slices.Delete(w.flights, 0, done)
	for i := range w.flights { // acknowledged where the fold has found nothing that counts
		if f := &w.flights[i]; f.acked != 0 && f.acked <= w.folded && f.verdict.Outcome != Counted {
			w.doubt()
		}
	}
}

// stored answers a frame's batches with their numbers.
func (w *Writer) stored(f *flight) {
	first := f.verdict.First
	for _, s := range f.content {
		w.out.Answers = append(w.out.Answers, Answer{Ticket: s.ticket, Fate: Stored, First: first, Time: f.verdict.Time})
		first += eventlog.Sequence(s.batch.Events)
	}
}

func (w *Writer) answerAll(all []submitted, fate Fate) {
	for i := range all {
		w.answer(all[i].ticket, fate)
	}
}

func (w *Writer) find(id FrameID) int {
	return slices.IndexFunc(w.flights, func(f flight) bool { return f.id == id })
}

// rising reports whether the frames were stored in the order in which they were sent, as far as is
// known. Where they were not, one of them is void, and this shows it before the fold does.
func (w *Writer) rising() bool {
	last := w.confirmed
	for i := range w.flights {
		if at := w.flights[i].acked; at != 0 {
			if at <= last {
				return false
			}
			last = at
		}
	}
	return true
}
