package functions

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/processor"
)

// worker is a function's work on one partition for as long as this instance owns it. With Lanes
// several goroutines call ProcessEvents at once; they share the record.
type worker struct {
	fn     *function
	part   *processor.Partition
	record *record
	writer writer        // of poison events; nil: they are dropped
	away   chan struct{} // a token, held by who puts an event away

	// owed: something is done whose checkpoint had to wait for the circuit.
	owed atomic.Bool
}

var _ processor.Worker = (*worker)(nil)

// Open reads what the last owner left and fences it.
func (w *worker) Open(ctx context.Context, p *processor.Partition) error {
	f := w.fn
	w.part, w.away = p, make(chan struct{}, 1)
	w.record = &record{
		store: f.store, group: f.group, key: workPrefix + f.name + "/" + p.ID(), function: f.name, reader: &f.works,
		epoch: p.Epoch(), instance: f.host.id, pen: make(chan struct{}, 1),
	}
	if w.fn.target != nil {
		w.writer = w.fn.target.writer(p.ID())
	}
	unreadable, err := w.record.open(ctx, w.fn.policy, p.Status().Saved)
	if err != nil {
		return fmt.Errorf("take over the work: %w", err)
	}
	if unreadable != nil {
		w.report("take over the work: attempts so far are forgotten", unreadable)
	}
	return nil
}

// ProcessEvents handles a batch to its end: nil means that every event of it is done, skipped or
// put away. It waits in here for retries and for the circuit, and gives the batch back undone when
// the partition is to be given up.
func (w *worker) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	if len(b.Events) == 0 {
		return w.idle(ctx)
	}
	if b.Events[0].Sequence <= w.record.begun.Load() {
		// The checkpoint had passed them: an operator has moved it back, or the hub is another one
		// of that name.
		saved := w.part.Status().Saved
		w.record.change(func(work *triage.Work) {
			*work, _ = work.Begin(w.fn.policy, w.record.epoch, w.record.instance, saved)
		})
	}
	if w.record.calm.Load() && w.fn.allOurs(b.Events) {
		return w.plain(ctx, b, stopping(b))
	}
	return newRound(ctx, w, b, stopping(b)).run()
}

// plain is the way of nearly all batches: one call, and the checkpoint. Nothing else is stored.
func (w *worker) plain(ctx context.Context, b *processor.Batch, stop <-chan struct{}) error {
	pass, err := w.fn.circuit.Wait(ctx, b.Leaving())
	switch {
	case err != nil:
		return undone(err)
	case pass.Probe:
		r := newRound(ctx, w, b, stop)
		if err := r.probe(pass); err != nil {
			return r.leave(err)
		}
		return r.run()
	}
	if err := w.fn.host.solo.share(ctx, b.Leaving()); err != nil {
		return undone(err)
	}
	out := w.fn.invoke(ctx, w.batch(b.Events, 1), stop)
	w.fn.host.solo.end()
	if !out.cancelled && out.done() {
		w.fn.circuit.Succeeded(out.clock)
		w.fn.counts.done.Add(int64(len(b.Events)))
		return w.checkpoint(ctx, b)
	}
	r := newRound(ctx, w, b, stop)
	r.term = pass.Term
	if err := r.take(out); err != nil {
		return r.leave(err)
	}
	return r.run()
}

// stopping is asked when a batch comes, for what is closed when the rest of it is to wait for the
// next owner; nil: it is not to wait, since the batch came when the partition was being given up
// already, to catch up with other lanes.
func stopping(b *processor.Batch) <-chan struct{} {
	if isClosed(b.Leaving()) {
		return nil
	}
	return b.Leaving()
}

// checkpoint is of a batch that is done. While the circuit is not closed no checkpoint moves: it is
// made up for by the next batch, when the partition is idle, or when it is given up.
func (w *worker) checkpoint(ctx context.Context, b *processor.Batch) error {
	if w.fn.open.Load() {
		w.owed.Store(true)
		return nil
	}
	return b.Checkpoint(ctx)
}

// idle is called when nothing has come for a while.
func (w *worker) idle(ctx context.Context) error {
	if w.fn.open.Load() {
		return nil
	}
	if w.owed.Swap(false) {
		if err := w.part.Checkpoint(ctx); err != nil {
			w.owed.Store(true)
			return err
		}
	}
	w.prune(ctx)
	return nil
}

// WantsIdleCalls tells the processor whether idle has anything to do. That only changes in calls.
func (w *worker) WantsIdleCalls() bool { return w.owed.Load() || !w.record.calm.Load() }

// prune forgets what the checkpoint has passed. That something was put away is worth a write: an
// operator who moves the checkpoint back wants everything once more.
func (w *worker) prune(ctx context.Context) {
	if w.record.calm.Load() {
		return
	}
	saved, forgotten := w.part.Status().Saved, false
	w.record.change(func(work *triage.Work) {
		had := len(work.Away) > 0
		work.Passed(saved)
		forgotten = had && len(work.Away) == 0
	})
	if forgotten {
		if err := w.record.save(ctx); err != nil && ctx.Err() == nil {
			w.report("store the work", err)
		}
	}
}

// ProcessError is told elsewhere, by the processor's OnError.
func (w *worker) ProcessError(context.Context, *processor.Partition, error) {}

// Close writes down what is done, whatever the circuit: the next owner shall not do it again. And
// it writes that it ended in good order, so that calls that were cancelled do not count as deaths.
func (w *worker) Close(ctx context.Context, p *processor.Partition, why processor.Reason) error {
	var err error
	if why != processor.LeaseLost {
		err = p.Checkpoint(ctx)
	}
	saved := p.Status().Saved
	w.record.change(func(work *triage.Work) {
		work.Passed(saved)
		work.Clean = true
	})
	if saveErr := w.record.save(ctx); saveErr != nil && why != processor.LeaseLost { // then it is only a try
		err = errors.Join(err, fmt.Errorf("store the work: %w", saveErr))
	}
	if w.writer != nil {
		w.writer.close(ctx)
	}
	return err
}

// persist stores the work, however long that takes.
func (w *worker) persist(ctx context.Context, leaving <-chan struct{}) error {
	for failures := 1; ; failures++ {
		err := w.record.save(ctx)
		if err == nil || errors.Is(err, processor.ErrFenced) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.report("store the work", err)
		if errors.Is(err, triage.ErrTooLarge) {
			// What is furthest above the checkpoint is forgotten first. It comes again only if this
			// instance dies, and then a poison event may be written twice.
			w.record.change(func(work *triage.Work) { work.Away = work.Away[:len(work.Away)/2] })
		}
		if err := sleep(ctx, leaving, backoff(failures)); err != nil {
			return err
		}
	}
}

// batch makes what the handler sees.
func (w *worker) batch(events []event.Event, attempt int) *Batch {
	return &Batch{
		Events: events, Attempt: attempt, Function: w.fn.name, Hub: w.fn.Hub, Group: w.fn.Group,
		Partition: w.part.ID(), Epoch: w.part.Epoch(),
	}
}

func (w *worker) report(doing string, err error) { w.fn.report(w.part.ID(), doing, err) }

// undone is what the processor is told of a batch that was not finished because the partition is
// given up: that is no failure.
func undone(err error) error {
	if errors.Is(err, circuit.ErrLeaving) {
		return processor.ErrUndone
	}
	return err
}
