package processor

import (
	"errors"
	"time"

	"github.com/eventyard/eventyard/hub"
)

// troubles counts what has gone wrong since the last event was read.
type troubles struct {
	count int
	since time.Time
}

// recover says what follows a session that ended with err: how long to wait before the
// next. A partition is never left owned and unread: what does not pass is given up, so that
// another instance can try.
func (p *pump) recover(err error, t *troubles) time.Duration {
	switch {
	case errors.Is(err, ErrMoved):
		p.gen = nil
		p.report("start again", ErrMoved)
		return 0
	case errors.Is(err, errNewHub):
		p.gen = nil
		return 0
	case errors.Is(err, errReopen):
		return 0
	case errors.Is(err, ErrFenced):
		p.ownership.lose(ErrLeaseLost)
		return 0
	case errors.Is(err, hub.ErrEvicted), errors.Is(err, hub.ErrRefused):
		return p.contested(err, t)
	}
	if open, ok := errors.AsType[errOpen](err); ok {
		p.report("open", open.error)
		p.drain(open, 0)
		return 0
	}
	now := time.Now()
	if t.count++; t.since.IsZero() {
		t.since = now
	}
	state, patient := Starting, false
	switch {
	case errors.Is(err, hub.ErrOutOfRange):
		p.refused, p.gen = true, nil
		p.progress.hand(nowhere)
	case errors.Is(err, ErrBadCheckpoint), errors.Is(err, ErrBadStart):
		state, patient = Faulted, true // Fail: only an operator can help
	case errors.Is(err, hub.ErrNotFound), errors.Is(err, hub.ErrUnauthorized):
		if !p.in.opened.Load() {
			select { // nothing was ever read: it is set up wrongly
			case p.in.fatal <- p.in.noGroup(err):
			default:
			}
		}
		state = Faulted
	}
	if now.Sub(t.since) >= p.in.cfg.StallAfter && !patient {
		p.stall(err)
		return 0
	}
	p.reportOf(err)
	p.health.set(state, err)
	return p.in.cfg.Backoff.delay(t.count)
}

// reportOf is for an error that may already say where it happened.
func (p *pump) reportOf(err error) {
	if _, ok := errors.AsType[*Error](err); ok {
		p.reportError(err)
		return
	}
	p.report("read", err)
}

// stall gives the partition up because nothing comes of it here.
func (p *pump) stall(cause error) {
	err := ErrStalled
	if cause != nil {
		err = errors.Join(ErrStalled, cause)
	}
	p.report("read", err)
	p.health.set(Stalled, err)
	p.drain(ErrStalled, 0)
}

// contested: the hub has given the partition to another reader. The lease shows whether that is in
// order, and is looked at at once.
func (p *pump) contested(err error, t *troubles) time.Duration {
	p.reportOf(err)
	if p.control.recheck(p.ownership.read, p.in.wake) != nil {
		return 0
	}
	t.count++
	p.health.set(Starting, err)
	if errors.Is(err, hub.ErrRefused) && p.control.level(p.epoch) > 0 {
		// The lease is ours, and yet someone reads with a higher epoch, as after the
		// store's records were lost: a new acquisition goes above it.
		p.drain(errRefused, 0)
		return 0
	}
	return p.in.cfg.Backoff.delay(t.count)
}
