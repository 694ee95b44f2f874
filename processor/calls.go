package processor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/panics"
)

// calls is the user's side of a partition: its worker, and which calls of it are under way. The
// pump's goroutine opens and closes the worker; it and the lanes each call in a scope of their own;
// the coordinator looks for calls that do not end.
type calls struct {
	limit   time.Duration // of one call; not above 0: none
	worker  Worker        // made by the pump's goroutine; others look at opened before
	opened  atomic.Bool   // the worker's Open has returned nil
	closing atomic.Bool   // the last call but Close has returned
	taken   atomic.Bool   // the call under way has the mark, to store it by itself

	mu     sync.Mutex // guards the list, and running and ended of its scopes
	scopes []*scope
}

// scope is where one goroutine calls user code: with a context that ends in time, with panics
// turned into errors, and so that a call that never returns is noticed. Its context and
// timer serve many calls, as making them anew for each batch costs more than a small batch does.
type scope struct {
	calls  *calls
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: no time-out

	running context.Context // of the call under way; nil: there is none
	ended   time.Time       // when the running call's context was first seen to have ended
}

func (c *calls) newScope() *scope {
	s := &scope{calls: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scopes = append(c.scopes, s)
	return s
}

// forgetLanes forgets the scopes of lanes, whose goroutines have ended: all but the pump's own.
func (c *calls) forgetLanes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scopes = c.scopes[:1]
}

// underWay reports whether user code is at work.
func (c *calls) underWay() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.scopes {
		if s.running != nil {
			return true
		}
	}
	return false
}

// stuck reports whether a call has ignored the end of its context for so long.
func (c *calls) stuck(now time.Time, after time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.scopes {
		switch {
		case s.running == nil || s.running.Err() == nil:
		case s.ended.IsZero():
			s.ended = now
		case now.Sub(s.ended) >= after:
			return true
		}
	}
	return false
}

// call calls user code. A call that outlives the limit has failed, whatever it returns.
func (s *scope) call(parent context.Context, fn func(context.Context) error) error {
	limit := s.calls.limit
	if s.ctx == nil || s.parent != parent || s.ctx.Err() != nil {
		if s.cancel != nil {
			s.cancel(nil)
		}
		ctx, cancel := context.WithCancelCause(parent)
		s.parent, s.ctx, s.cancel, s.timer = parent, ctx, cancel, nil
		if limit > 0 {
			s.timer = time.AfterFunc(limit, func() { cancel(ErrHandlerTimeout) })
		}
	} else if s.timer != nil {
		s.timer.Reset(limit)
	}
	s.mark(true)
	err := panics.Call(func() error { return fn(s.ctx) })
	s.mark(false)
	if s.timer == nil || s.timer.Stop() {
		return err
	}
	// The timer has fired, perhaps just after the call returned: its context is not used again.
	late := context.Cause(s.ctx) == ErrHandlerTimeout
	s.cancel(nil)
	s.ctx = nil
	switch {
	case late && err != nil:
		return timedOut{err}
	case late:
		return ErrHandlerTimeout
	}
	return err
}

// timedOut is the error of a call that took too long.
type timedOut struct{ err error }

func (t timedOut) Error() string   { return ErrHandlerTimeout.Error() + ": " + t.err.Error() }
func (t timedOut) Unwrap() []error { return []error{ErrHandlerTimeout, t.err} }

// mark says which call is under way, for underWay and stuck.
func (s *scope) mark(inCall bool) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if s.running, s.ended = nil, (time.Time{}); inCall {
		s.running = s.ctx
	}
}
