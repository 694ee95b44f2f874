package processor

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/panics"
)

// scope is where one goroutine calls user code: with a context that ends in time, with panics
// turned into errors, and so that a call that never returns is noticed. Its context and
// timer serve many calls, as making them anew for each batch costs more than a small batch does.
type scope struct {
	p      *pump
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil: no time-out

	// Guarded by p.mu.
	running context.Context // of the call under way; nil: there is none
	ended   time.Time       // when the running call's context was first seen to have ended
}

func newScope(p *pump) *scope {
	s := &scope{p: p}
	p.mu.Lock()
	p.scopes = append(p.scopes, s)
	p.mu.Unlock()
	return s
}

// call calls user code. A call that outlives Config.HandlerTimeout has failed, whatever it returns.
func (s *scope) call(parent context.Context, fn func(context.Context) error) error {
	ctx := s.begin(parent)
	err := panics.Call(func() error { return fn(ctx) })
	if s.end() {
		if err != nil {
			return timedOut{err}
		}
		return ErrHandlerTimeout
	}
	return err
}

// timedOut is the error of a call that took too long.
type timedOut struct{ err error }

func (t timedOut) Error() string   { return ErrHandlerTimeout.Error() + ": " + t.err.Error() }
func (t timedOut) Unwrap() []error { return []error{ErrHandlerTimeout, t.err} }

func (s *scope) begin(parent context.Context) context.Context {
	limit := s.p.in.cfg.HandlerTimeout
	if s.ctx == nil || s.parent != parent || s.ctx.Err() != nil {
		s.fresh(parent, limit)
	} else if s.timer != nil {
		s.timer.Reset(limit)
	}
	s.mark(s.ctx)
	return s.ctx
}

func (s *scope) fresh(parent context.Context, limit time.Duration) {
	if s.cancel != nil {
		s.cancel(nil)
	}
	ctx, cancel := context.WithCancelCause(parent)
	s.parent, s.ctx, s.cancel, s.timer = parent, ctx, cancel, nil
	if limit > 0 {
		s.timer = time.AfterFunc(limit, func() { cancel(ErrHandlerTimeout) })
	}
}

// end tells whether the time was up. A context whose timer has fired, perhaps just after the call
// returned, is not used again.
func (s *scope) end() (late bool) {
	s.unmark()
	if s.timer != nil && !s.timer.Stop() {
		late = context.Cause(s.ctx) == ErrHandlerTimeout
		s.cancel(nil)
		s.ctx = nil
	}
	return late
}

func (s *scope) mark(running context.Context) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.running, s.ended = running, time.Time{}
}

func (s *scope) unmark() {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.running = nil
}

// stuck tells whether a call has not heeded the end of its context for so long.
func (p *pump) stuck(now time.Time, after time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.scopes {
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
