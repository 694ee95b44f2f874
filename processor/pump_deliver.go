package processor

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/sleep"
)

// deliver calls the handler with a batch until it is done, in order: nothing else of the
// partition (or lane) is handled meanwhile. An error means that the session is over.
func (p *pump) deliver(s *scope, b *Batch) error {
	for b.Attempt = 1; ; {
		if err := p.ownership.mayCall(b.catchUp); err != nil {
			return err
		}
		p.progress.call(b.end)
		p.health.call(b.Attempt)
		err := s.call(p.ownership.work, func(ctx context.Context) error { return p.process(ctx, b) })
		p.calls.taken.Store(false)
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
		if err := sleep.For(b.gen.ctx, p.in.cfg.Backoff.delay(failures), nil); err != nil {
			return err
		}
	}
}

// judge does what a call's outcome asks for, and says what it means: done, or once more (neither,
// or ErrUndone), or the end of the session (another error). Nothing is done that ended after the
// lease did.
func (p *pump) judge(b *Batch, err error) (done bool, end error) {
	t := p.ownership
	_, panicked := errors.AsType[*PanicError](err)
	switch {
	case t.lost():
		return false, ErrLeaseLost
	case b.gen.number != p.ledger.current():
		return false, ErrMoved
	case err == nil:
		p.pass(b)
		p.health.succeeded(b.Attempt)
		if p.in.cfg.Checkpoints.Auto && len(b.Events) > 0 {
			if err := b.checkpoint(t.own, b.end); err != nil {
				return false, err
			}
		}
		return true, nil
	case errors.Is(err, ErrFenced):
		t.lose(ErrLeaseLost)
		return false, ErrLeaseLost
	case errors.Is(err, ErrConflict):
		// The handler stores checkpoints by itself: either its own write was made although it did
		// not learn of it, or an operator has moved the checkpoint.
		settled := p.ledger.verify(t.own, true)
		switch {
		case errors.Is(settled, ErrMoved), errors.Is(settled, ErrFenced):
			return false, settled
		case settled != nil:
			err = settled
		case p.ledger.savedUpTo() >= b.end.seq:
			p.pass(b)
			p.health.succeeded(b.Attempt)
			return true, nil
		}
	case t.work.Err() != nil:
		return false, context.Cause(t.work) // interrupted, which is no failure
	case errors.Is(err, ErrUndone) && !errors.Is(err, ErrHandlerTimeout) && !panicked:
		// The handler does not want to go on with it now: no failure either, and never gone past.
		if b.gen.ctx.Err() != nil {
			return false, context.Cause(b.gen.ctx)
		}
		return false, ErrUndone
	case errors.Is(err, errUntaken), errors.Is(err, errLetGo): // no loop has handled it: never gone past
		if t.read.Err() != nil {
			return false, context.Cause(t.read)
		}
		p.report("handle batch", err)
		p.health.failed(b.Attempt)
		return false, nil
	}
	p.report("handle batch", err)
	if p.in.cfg.Continue {
		p.pass(b)
		if b.lane != nil {
			// The lanes' checkpoint passes the batch once all before it are marked.
			if err := b.record(t.own, b.lane.all.skip(b)); err != nil {
				p.report("save checkpoint", err)
			}
		}
		return true, nil
	}
	p.health.failed(b.Attempt)
	return false, nil
}

// pass notes that a batch is behind us.
func (p *pump) pass(b *Batch) {
	if b.lane != nil {
		p.progress.pass(b.lane.all.finish(b))
		return
	}
	if b.end.seq >= 0 {
		p.progress.hand(b.end)
		p.progress.pass(b.end)
	}
}
