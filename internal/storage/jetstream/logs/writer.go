package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// writer drives a frames.Writer, which decides, and answers receipts. The stream's lock guards it.
type writer struct {
	p  *part
	id frames.WriterID
	w  *frames.Writer

	receipts map[frames.Ticket]*receipt
	oldest   frames.Ticket // none below it waits for an answer
	last     frames.Ticket
	seen     []frames.Seen
	actions  frames.Actions
	answers  []frames.Answer
	fences   []frames.SendFence // to be sent when the stream is loaded
	// epoch is that of the newest fence.
	epoch frames.Epoch
	// failed is the fence that failed, to be followed by another at again; 0: none.
	failed frames.FrameID
	again  time.Time
	// reason is why the storage refused the newest message that it refused; nil after one that it took.
	reason error
	// uncertain: somebody was told so since the writer was last settled.
	uncertain bool
	settled   bool // as of when it was last driven
	used      time.Time
	// salt is that of a claim; claiming, that nobody was given it yet; rests, that the stream was not
	// followed since its last use; dropped, that it has ended here, whether or not it is lost.
	salt                     uint32
	claiming, rests, dropped bool
	// importNext and importTime are where the newest import ends.
	importNext eventlog.Sequence
	importTime time.Time
}

func newWriter(p *part, id frames.WriterID, w *frames.Writer) *writer {
	wr := &writer{p: p, id: id, w: w, receipts: map[frames.Ticket]*receipt{}, oldest: 1}
	p.s.active[wr] = true
	return wr
}

// receipt is the promise of one batch; see eventlog.Receipt.
type receipt struct {
	size  int
	since time.Time
	time  int64 // the batch's own; 0: the frame's
	done  chan struct{}
	// appended and err are written before done is closed, and read after.
	appended eventlog.Appended
	err      error
}

// refused is the receipt of a batch that was not submitted.
func refused(err error) *receipt {
	r := &receipt{done: make(chan struct{}), err: err}
	close(r.done)
	return r
}

// Start has nothing to do: what is submitted is on its way.
func (r *receipt) Start() {}

// Wait waits for the batch's fate.
func (r *receipt) Wait(ctx context.Context) (eventlog.Appended, error) {
	select {
	case <-r.done:
		return r.appended, r.err
	default:
	}
	select {
	case <-r.done:
		return r.appended, r.err
	case <-ctx.Done():
		return eventlog.Appended{}, context.Cause(ctx)
	}
}

// submit gives a batch its place. ownTime is not zero for what is imported.
func (w *writer) submit(b frames.Batch, ownTime int64, now time.Time) *receipt {
	r := &receipt{size: b.Bytes(), since: now, time: ownTime, done: make(chan struct{})}
	w.last = w.w.Submit(b)
	w.receipts[w.last] = r
	w.p.pending += r.size
	w.p.s.submitted.Add(1)
	w.used = now
	w.p.s.active[w] = true
	return r
}

// sees keeps what became of a frame of this writer until it is driven.
func (w *writer) sees(seen frames.Seen) {
	w.seen = append(w.seen, seen)
	w.p.s.active[w] = true
}

// acked passes an answer of the storage on.
func (w *writer) acked(a ack, now time.Time) {
	w.p.s.active[w] = true
	switch {
	case a.err == nil && a.fence:
		w.reason = nil
		w.w.FenceAcknowledged(a.id, a.seq)
	case a.err == nil:
		w.reason = nil
		w.w.Acknowledged(a.id, a.seq)
	case a.fence:
		w.reason = a.err
		w.failed, w.again = a.id, now.Add(retryPause)
	default:
		w.reason = a.err
		w.w.Failed(a.id)
	}
}

// answer tells the writer what was folded, and those who wait what it says to that. It gives how many
// small batches were answered, whose senders may come back with the next.
func (w *writer) answer() (small int) {
	if w.p.ended != nil {
		return 0
	}
	w.folded()
	w.answers = w.w.TakeAnswers(w.answers[:0])
	for _, a := range w.answers {
		if r := w.receipts[a.Ticket]; r != nil && r.size < frames.LargeBytes {
			small++
		}
	}
	w.settleAll(w.answers)
	return small
}

// folded tells the writer what the fold has passed.
func (w *writer) folded() {
	w.w.Folded(w.p.s.line.at, w.seen)
	w.seen = w.seen[:0]
}

// drive has the writer do what it can, and says how long it can do no more.
func (w *writer) drive(now time.Time, out *outbox) (wait time.Duration) {
	if w.p.ended != nil {
		delete(w.p.s.active, w)
		return patience
	}
	if !w.p.s.readyLocked() { // what is sent now might have to be given up, should the stream be loaded anew
		return w.overdue(now)
	}
	w.folded()
	wait = w.overdue(now)
	if w.failed != 0 {
		if pause := w.again.Sub(now); pause > 0 {
			wait = min(wait, pause)
		} else {
			w.w.FenceFailed(w.failed)
			w.failed = 0
		}
	}
	w.take(now, out)
	if settled := w.w.Settled(); settled != w.settled {
		w.settled, w.p.s.moved = settled, true
	}
	if w.settled {
		w.uncertain = false
	}
	if w.w.Idle() && w.w.Settled() {
		delete(w.p.s.active, w)
	}
	return wait
}

// overdue gives up what has waited for too long, or where there is no room; and says when the next
// will have.
func (w *writer) overdue(now time.Time) time.Duration {
	for w.oldest <= w.last && w.receipts[w.oldest] == nil {
		w.oldest++
	}
	if w.oldest > w.last {
		return patience
	}
	late := w.receipts[w.oldest].since.Add(patience).Sub(now)
	if late <= 0 || errors.Is(w.reason, streams.ErrNoSpace) {
		w.giveUp()
		return patience
	}
	return late
}

// take does what the writer wants done.
func (w *writer) take(now time.Time, out *outbox) {
	w.collect()
	for _, f := range w.actions.Frames {
		ms := w.p.s.e.stamp(now)
		if imported := importTime(f.Batches); imported != 0 {
			ms = imported
		}
		f.Header.Base, f.Header.Time = w.p.fold.Stamp(w.p.s.line.at, ms)
		message := frames.AppendData(make([]byte, 0, sizeOf(f.Batches)), f.Header, f.Batches)
		*out = append(*out, &sent{subject: w.p.subject, message: message, w: w, id: f.ID})
	}
	for _, f := range w.fences {
		f.Header.Base, f.Header.Time = w.p.fold.Stamp(w.p.s.line.at, w.p.s.e.stamp(now))
		w.epoch = f.Header.Epoch
		*out = append(*out, &sent{subject: w.p.subject, message: frames.AppendFence(nil, f.Header), w: w, id: f.ID, fence: true})
	}
	w.fences = w.fences[:0]
}

// collect takes over what the writer wants done, and answers.
func (w *writer) collect() {
	w.w.Take(&w.actions)
	w.fences = append(w.fences, w.actions.Fences...)
	w.settleAll(w.actions.Answers)
}

// settleAll gives answers to those who wait for them.
func (w *writer) settleAll(answers []frames.Answer) {
	for _, a := range answers {
		r := w.receipts[a.Ticket]
		if r == nil {
			continue
		}
		if a.Fate == frames.Uncertain {
			w.uncertain = true
		}
		appended := eventlog.Appended{First: a.First, Time: time.UnixMilli(a.Time)}
		if r.time != 0 {
			appended.Time = time.UnixMilli(r.time)
		}
		w.settle(a.Ticket, r, appended, w.errorOf(a.Fate))
	}
}

func sizeOf(batches []frames.Batch) int {
	n := frames.HeaderBytes
	for i := range batches {
		n += batches[i].Bytes()
	}
	return n
}

// giveUp answers all that waits. The window is empty then: collecting sends no frames.
func (w *writer) giveUp() {
	w.w.GiveUp()
	w.collect()
}

// end answers all that waits, since the partition has ended. Nothing is sent any more. Of a removed
// log nobody can tell what was stored; of a closed one somebody will.
func (w *writer) end(why error) {
	if errors.Is(why, eventlog.ErrClosed) {
		w.giveUp()
	}
	for t, r := range w.receipts {
		w.settle(t, r, eventlog.Appended{}, why)
	}
	delete(w.p.s.active, w)
}

func (w *writer) settle(t frames.Ticket, r *receipt, appended eventlog.Appended, err error) {
	if err == nil {
		r.appended = appended
	}
	r.err = err
	close(r.done)
	delete(w.receipts, t)
	w.p.pending -= r.size
	w.p.s.moved = true
}

// errorOf is what a caller hears of a fate.
func (w *writer) errorOf(fate frames.Fate) error {
	why := w.p.ended
	switch {
	case why != nil:
	case errors.Is(w.reason, streams.ErrNoSpace):
		why = eventlog.ErrNoSpace
	default:
		why = eventlog.ErrUnavailable
	}
	switch fate {
	case frames.Stored:
		return nil
	case frames.Displaced:
		return eventlog.ErrFenced
	case frames.Uncertain:
		return fmt.Errorf("append to %s of %s: %w: %w", w.p.subject, w.p.s.name, eventlog.ErrUncertain, why)
	default:
		return fmt.Errorf("append to %s of %s: %w", w.p.subject, w.p.s.name, why)
	}
}
