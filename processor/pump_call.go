package processor

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/event"
)

func (p *pump) batch(events []event.Event) *Batch {
	b := &Batch{Events: events, Partition: p.part, generation: p.generation, leaving: p.gen.Done(), end: nowhere}
	if n := len(events); n > 0 {
		b.end = positionOf(&events[n-1])
	}
	return b
}

// deliver calls the handler with a batch until it is done, in order: nothing else of the
// partition (or lane) is handled meanwhile. An error means that the session is over.
func (p *pump) deliver(s *scope, b *Batch) error {
	for b.Attempt = 1; ; {
		if err := p.mayCall(b.catchUp); err != nil {
			return err
		}
		p.calling(b)
		err := s.call(p.work, func(ctx context.Context) error { return p.worker.ProcessEvents(ctx, b) })
		p.taken.Store(false)
		done, err := p.judge(b, err)
		failures := b.Attempt
		switch {
		case err == ErrUndone: // by the handler's own wish: no attempt, and no longer wait each time
			failures = 1
		case done || err != nil:
			return err
		default:
			b.Attempt++
		}
		if err := sleep(p.gen, p.in.cfg.Backoff.delay(failures)); err != nil {
			return err
		}
	}
}

// mayCall: no call starts once the lease cannot be proven, or the partition is given up, unless to catch up.
func (p *pump) mayCall(catchUp bool) error {
	if !p.proven() {
		p.lose()
	}
	ctx := p.read
	if catchUp {
		ctx = p.work
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// judge says what a call's outcome means: done, or once more (neither, or ErrUndone), or the end of the
// session (another error). Nothing is done that ended after the lease did.
func (p *pump) judge(b *Batch, err error) (done bool, end error) {
	switch {
	case p.lost():
		return false, ErrLeaseLost
	case b.generation != p.ledger.current():
		return false, ErrMoved
	case err == nil:
		return p.succeed(b)
	case errors.Is(err, ErrFenced):
		p.lose()
		return false, ErrLeaseLost
	case errors.Is(err, ErrConflict):
		return p.conflict(b, err)
	case p.work.Err() != nil:
		return false, context.Cause(p.work) // interrupted, which is no failure
	case gaveBack(err):
		return p.undone()
	case errors.Is(err, errUntaken), errors.Is(err, errLetGo):
		return p.untaken(b, err)
	}
	return p.fail(b, err)
}

// gaveBack tells that the handler does not want to go on with a batch now. One that took too long, or panicked, has
// failed, whatever it says.
func gaveBack(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	return errors.Is(err, ErrUndone) && !errors.Is(err, ErrHandlerTimeout) && !panicked
}

// undone is of a batch that its handler gave back: no failure, and never gone past.
func (p *pump) undone() (bool, error) {
	if p.gen.Err() != nil {
		return false, context.Cause(p.gen)
	}
	return false, ErrUndone
}

// untaken is of a batch that no loop has handled: that is never gone past.
func (p *pump) untaken(b *Batch, err error) (bool, error) {
	if p.read.Err() != nil {
		return false, context.Cause(p.read)
	}
	p.report("handle batch", err)
	p.failed(b)
	return false, nil
}

// succeed moves on, and with Auto the checkpoint with it.
func (p *pump) succeed(b *Batch) (bool, error) {
	p.pass(b)
	p.retried(b)
	if p.in.cfg.Checkpoints.Auto && len(b.Events) > 0 {
		if err := b.checkpoint(p.own, b.end); err != nil {
			return false, err
		}
	}
	return true, nil
}

// conflict is of a handler that stores checkpoints by itself: either its own write was made although
// it did not learn of it, or an operator has moved the checkpoint.
func (p *pump) conflict(b *Batch, cause error) (bool, error) {
	if err := p.ledger.settle(p.own); err != nil {
		if errors.Is(err, ErrMoved) || errors.Is(err, ErrFenced) {
			return false, err
		}
		return p.fail(b, err)
	}
	if p.ledger.covers(b.end) {
		p.pass(b)
		p.retried(b)
		return true, nil
	}
	return p.fail(b, cause)
}

// fail tells of the failure. The batch comes again unless the configuration says to go on.
func (p *pump) fail(b *Batch, err error) (bool, error) {
	p.report("handle batch", err)
	if p.in.cfg.Continue {
		p.pass(b)
		b.skip()
		return true, nil
	}
	p.failed(b)
	return false, nil
}

// pass notes that a batch is behind us.
func (p *pump) pass(b *Batch) {
	if b.lane != nil {
		p.passed(b.lane.all.finish(b))
		return
	}
	if b.end.seq >= 0 {
		p.handed(b.end)
		p.passed(b.end)
	}
}

func (p *pump) calling(b *Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = b.end
	p.attempt = b.Attempt
}

// failed and retried keep count of the batches that have to come again.
func (p *pump) failed(b *Batch) {
	if b.Attempt == 1 {
		p.mu.Lock()
		p.retrying++
		p.mu.Unlock()
	}
	p.setState(Retrying, nil)
}

func (p *pump) retried(b *Batch) {
	p.mu.Lock()
	if b.Attempt > 1 {
		p.retrying--
	}
	well := p.retrying == 0
	news := p.err != nil || p.state == Retrying
	p.mu.Unlock()
	if well && news {
		p.setState(Running, nil)
	}
}

// finish ends the pump: the reader is closed already, the last call has returned.
func (p *pump) finish() {
	why := p.reason()
	p.closing.Store(true)
	if p.opened.Load() {
		p.closeWorker(why)
	}
	if !p.lost() {
		ctx, cancel := context.WithTimeout(p.own, p.in.cfg.storeTimeout())
		if err := p.ledger.flush(ctx); err != nil {
			p.report("save checkpoint before the partition is given up", err)
		}
		cancel()
	}
	p.mu.Lock()
	p.expiry.Stop()
	if p.grace != nil {
		p.grace.Stop()
	}
	p.mu.Unlock()
	p.cancelRead(publicCause(why))
	p.cancelWork(publicCause(why))
	p.setState(Closed, nil)
}

func (p *pump) closeWorker(why error) {
	within := p.in.cfg.Stop / 4
	if errors.Is(why, ErrHandoff) {
		within = p.in.cfg.Handoff
	}
	parent := p.own
	if p.lost() {
		parent = p.in.values // it may try all the same
	}
	ctx, cancel := context.WithTimeoutCause(parent, max(within, time.Second), publicCause(why))
	defer cancel()
	err := p.main.call(ctx, func(ctx context.Context) error { return p.worker.Close(ctx, p.part, p.closeReason(why)) })
	if err != nil {
		p.report("close", err)
	}
}

// closeReason is what the worker is told: what counts is whether the lease is still ours.
func (p *pump) closeReason(why error) Reason {
	switch {
	case p.lost():
		return LeaseLost
	case errors.Is(why, ErrShutdown):
		return Shutdown
	default:
		return Handoff
	}
}
