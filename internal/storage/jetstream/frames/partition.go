package frames

import (
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// How long, in the partition's own time, a writer stays known after its last use.
const (
	WriterLife   = 24 * time.Hour
	ProducerLife = time.Hour
)

// life is the writer's, in milliseconds.
func (id WriterID) life() int64 {
	if id.Producer {
		return ProducerLife.Milliseconds()
	}
	return WriterLife.Milliseconds()
}

// State is what the frames of a partition have added up to.
type State struct {
	// Next is the number that the next event will get.
	Next eventlog.Sequence
	// Time is that of the newest event, in milliseconds; 0 if there never was one.
	Time int64
	// Bytes is the size of all frames that have counted, from the first on.
	Bytes int64
	// Head is where what is kept begins.
	Head Head
}

// Stable is the number below which readers of whole transactions may read. There are no
// transactions yet, so that it is the end.
func (s State) Stable() eventlog.Sequence { return s.Next }

// Held is the size of what is kept.
func (s State) Held() int64 { return s.Bytes - s.Head.Bytes }

// Before reports whether a fold that begins with this state comes to the event with this number:
// a reader looks for the newest mark of which it holds.
func (s State) Before(number eventlog.Sequence) bool { return s.Next <= number }

// BeforeTime is Before for the first event enqueued at a time, in milliseconds, or later.
func (s State) BeforeTime(time int64) bool { return s.Time < time }

// Head is the logical beginning of a partition: retention moves it, marks carry it, and what lies
// before it may be removed when it suits the storage.
type Head struct {
	// First is the oldest number kept.
	First eventlog.Sequence
	// Seq is at or before the frame of that event: the partition needs no frame before it.
	Seq StreamSeq
	// Bytes is State.Bytes as of the last frame before First.
	Bytes int64
}

// Partition folds the frames of one partition, in their order, into its state. One goroutine uses
// it at a time. It is a function of the frames: two that were given the same ones, from the start
// or from any mark, are equal.
type Partition struct {
	state   State
	at      StreamSeq // of the last frame folded, or of the mark that the fold began with
	writers writers
	past    history
	hole    *Missing // nil: none is known
}

// NewPartition begins before the first frame of a stream.
func NewPartition() *Partition { return Restore(0, PartitionState{}) }

// State is as of the last frame applied.
func (p *Partition) State() State { return p.state }

// At is the sequence of the last frame that was applied, or of the mark where the fold began.
func (p *Partition) At() StreamSeq { return p.at }

// Writer gives the epoch and q at which a writer is. An unknown one is at (0, 0).
func (p *Partition) Writer(id WriterID) (epoch Epoch, q uint64, known bool) {
	w, known := p.writers.find(id, p.state.Time)
	return w.epoch, w.q, known
}

// Stamp gives base and time for a frame that is about to be written by who has folded the whole
// stream up to folded and whose clock shows now, in milliseconds. The time is not before the
// newest, or a slow clock would make the frame stale.
func (p *Partition) Stamp(folded StreamSeq, now int64) (Base, int64) {
	return Base{Seq: max(folded, p.at), Next: p.state.Next}, min(max(now, p.state.Time), maxTime)
}

// Trim moves the logical head to h, unless it is there already or beyond; not past the end.
func (p *Partition) Trim(h Head) {
	if h.First > p.state.Head.First && h.First <= p.state.Next && h.Bytes <= p.state.Bytes {
		p.state.Head = h
	}
}

// Apply folds the frame at a sequence of the stream. Frames are applied in the stream's order; one
// at or before the last is Old. It allocates only for a new writer.
func (p *Partition) Apply(at StreamSeq, h Header) Verdict {
	if at <= p.at {
		return Verdict{Outcome: Old}
	}
	if p.hole == nil && !p.past.agrees(at, h.Base) {
		first := min(p.past.agreed.next, h.Base.Next)
		p.hole = &Missing{First: first, Next: max(first, p.state.Next, h.Base.Next)}
	}
	if p.hole != nil {
		return Verdict{Outcome: Hole, Missing: *p.hole}
	}
	return p.judge(at, h)
}

// ApplyAnyway folds a frame that Apply called a hole, and ends the hole. It is for who has folded
// the stream anew, read from elsewhere, and met the same disagreement at the same frame: then the
// stream is whole and the frame's writer had it wrong. What counts does not depend on the base, so
// that all who go on come to the same numbers.
func (p *Partition) ApplyAnyway(at StreamSeq, h Header) Verdict {
	if at <= p.at {
		return Verdict{Outcome: Old}
	}
	p.hole = nil
	return p.judge(at, h)
}

// ApplyBehind folds a frame that Apply called a hole, and ends the hole, where frames are lost for ever. Numbers go
// on behind the later of the two folds, so that none is given twice.
func (p *Partition) ApplyBehind(at StreamSeq, h Header) Verdict {
	if at <= p.at || p.hole == nil {
		return p.Apply(at, h)
	}
	p.state.Next = max(p.state.Next, p.hole.Next)
	p.past = newHistory(point{at: at - 1, next: p.state.Next})
	p.hole = nil
	return p.judge(at, h)
}

// judge is the rule.
func (p *Partition) judge(at StreamSeq, h Header) Verdict {
	p.at = at
	if h.Kind != KindData && h.Kind != KindFence {
		return Verdict{Outcome: Void, Reason: Foreign}
	}
	if h.Time+h.Writer.life()/2 <= p.state.Time {
		return Verdict{Outcome: Void, Reason: Stale}
	}
	w, _ := p.writers.find(h.Writer, p.state.Time)
	// A use is dated by the frame where that is later: a fence does not move the partition's time,
	// and the writer has to outlive what it has sent before.
	used := max(h.Time, p.state.Time)
	if h.Kind == KindFence {
		if h.Epoch <= w.epoch {
			return Verdict{Outcome: Void, Reason: Behind}
		}
		p.writers.set(h.Writer, writer{epoch: h.Epoch, used: used}, p.state.Time)
		return Verdict{Outcome: Fenced}
	}
	if h.Epoch != w.epoch || h.Q != w.q {
		reason := Behind
		if h.Epoch > w.epoch || h.Epoch == w.epoch && h.Q > w.q {
			reason = Ahead
		}
		return Verdict{Outcome: Void, Reason: reason}
	}
	p.writers.set(h.Writer, writer{epoch: w.epoch, q: w.q + 1, used: used}, p.state.Time)
	return p.count(at, h, used)
}

// count gives the frame's events their numbers.
func (p *Partition) count(at StreamSeq, h Header, time int64) Verdict {
	v := Verdict{Outcome: Counted, First: p.state.Next, Time: time}
	p.state.Next += eventlog.Sequence(h.Events)
	p.state.Time = time
	p.state.Bytes += int64(h.Bytes())
	p.past.add(point{at: at, next: p.state.Next})
	return v
}
