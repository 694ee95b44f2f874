package processor

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ownership is the time in which this instance may work on a partition. The coordinator extends it
// with every renewal of the lease; whoever finds a reason ends it: the coordinator, the ledger that
// was fenced, the watchdog, the pump itself. The others see its contexts, each of which ends with
// the one before:
//
//	own   the lease is ours as far as can be proven   ends with ErrLeaseLost
//	work  what calls see                              ends also when the time to drain is up
//	read  new calls may start                         ends also as soon as draining begins
//
// The rule is trustedUntil = renewStarted + Config.Lease. Other instances count the same time from
// when they have read the renewal, which is later: the owner has stopped when they begin.
type ownership struct {
	own, work, read                   context.Context
	cancelOwn, cancelWork, cancelRead context.CancelCauseFunc
	onLost                            func() // called once, with no lock held

	mu           sync.Mutex // guards what follows
	trustedUntil time.Time
	expiry       *time.Timer
	grace        *time.Timer // ends work when the time to drain is up; nil: not draining
	why          error       // why the partition is given up; nil: it is not
}

func newOwnership(values context.Context, trustedUntil time.Time, onLost func()) *ownership {
	t := &ownership{trustedUntil: trustedUntil, onLost: onLost}
	t.own, t.cancelOwn = context.WithCancelCause(values)
	t.work, t.cancelWork = context.WithCancelCause(t.own)
	t.read, t.cancelRead = context.WithCancelCause(t.work)
	t.mu.Lock() // the timer may fire at once
	defer t.mu.Unlock()
	t.expiry = time.AfterFunc(time.Until(trustedUntil), func() { t.proven() })
	return t
}

// prove extends the ownership after a renewal. A lease that was lost stays lost.
func (t *ownership) prove(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until.After(t.trustedUntil) && t.own.Err() == nil {
		t.trustedUntil = until
		t.expiry.Reset(time.Until(until))
	}
}

// proven reports whether the lease is ours now; if not, it is lost from now on.
func (t *ownership) proven() bool {
	t.mu.Lock()
	proven := time.Now().Before(t.trustedUntil)
	t.mu.Unlock()
	if !proven {
		t.lose(ErrLeaseLost)
	}
	return proven
}

// lose ends everything at once: the lease is another's, or may be.
func (t *ownership) lose(why error) {
	t.mu.Lock()
	already := t.lost()
	t.trustedUntil = time.Time{}
	t.expiry.Stop()
	if t.why == nil {
		t.why = why
	}
	t.cancelOwn(ErrLeaseLost) // under the lock, as in drain
	t.mu.Unlock()
	if !already {
		t.onLost()
	}
}

func (t *ownership) lost() bool { return t.own.Err() != nil }

// drain lets no further call start, and the contexts of those under way end with why after a
// while. Only the first reason counts, which the result says, but who comes second can rely on it,
// too: the reason is set and the context ended under one lock.
func (t *ownership) drain(why error, within time.Duration) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil {
		return false
	}
	t.why = why
	cause := publicCause(why)
	t.grace = time.AfterFunc(within, func() { t.cancelWork(cause) })
	t.cancelRead(cause)
	return true
}

// publicCause is what contexts end with: whatever our reason is, the partition goes to
// another instance, or the processor stops.
func publicCause(why error) error {
	for _, cause := range []error{ErrShutdown, ErrHandlerTimeout, ErrLeaseLost} {
		if errors.Is(why, cause) {
			return cause
		}
	}
	return ErrHandoff
}

// hurry changes the time that a drain has from now on.
func (t *ownership) hurry(within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grace != nil {
		t.grace.Reset(within)
	}
}

// reason is why the partition is given up; nil while it is not.
func (t *ownership) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// mayCall: no call starts once the lease cannot be proven, or the partition is given up, unless
// to catch up with other lanes.
func (t *ownership) mayCall(catchUp bool) error {
	ctx := t.read
	if catchUp {
		ctx = t.work
	}
	if !t.proven() || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// end stops the timers, and the contexts but own: the pump has finished.
func (t *ownership) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expiry.Stop()
	if t.grace != nil {
		t.grace.Stop()
	}
	t.cancelRead(publicCause(t.why))
	t.cancelWork(publicCause(t.why))
}

// closeReason is what the worker gets: what counts is whether the lease is still ours.
func (t *ownership) closeReason() Reason {
	switch {
	case t.lost():
		return LeaseLost
	case errors.Is(t.reason(), ErrShutdown):
		return Shutdown
	default:
		return Handoff
	}
}
