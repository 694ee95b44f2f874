// Package service runs the long-lived parts of a process together: all start, and
// when the process is to end, or any of them does, they stop one after another in
// reverse order, so that whatever a part relies on outlives it.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// ErrEnded: a part ended by itself, without an error, while it should have run on.
var ErrEnded = errors.New("ended by itself")

// DefaultGrace is how long soft stops may take, all together.
const DefaultGrace = 8 * time.Second

// Part is one thing that runs.
type Part struct {
	// Name stands before the part's errors and in the log.
	Name string
	// Run works until ctx ends, or until Stop has let it finish. When it returns all
	// goroutines of the part have ended.
	Run func(ctx context.Context) error
	// Stop asks Run to finish what is under way and return. Its own ctx ends with the
	// grace period; then Run's does too. Nil means that ending ctx is all it takes.
	Stop func(ctx context.Context) error
}

// Group is a set of parts. It holds no state: each Run is a life of its own.
type Group struct {
	// Parts in the order of their dependence: a later one may use an earlier one.
	Parts []Part
	// Grace is how long the soft stops may take, all together; zero means
	// DefaultGrace, negative none at all.
	Grace time.Duration
	// Log hears of parts that had to be cut off; nil means slog.Default().
	Log *slog.Logger
}

// Run starts every part and returns when all have ended. They are stopped, last one
// first, when ctx ends or when any part ends by itself. The error is that of the part
// that failed first; ending because ctx did is none.
func (g Group) Run(ctx context.Context) error {
	ended := make(chan *running, len(g.Parts))
	parts := make([]*running, len(g.Parts))
	for i, p := range g.Parts {
		parts[i] = start(ctx, p, ended)
	}
	var first error
	select {
	case <-ctx.Done():
	case r := <-ended:
		first = r.outcome()
	}
	// All stop within one grace period, one after the other.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(g.Grace, DefaultGrace))
	defer cancel()
	for _, p := range slices.Backward(parts) {
		if cut := p.stop(stopping); cut != nil {
			cmp.Or(g.Log, slog.Default()).Warn("part did not stop in time and was cut off", "part", p.Name, "error", cut)
		}
	}
	// Parts that failed meanwhile queued up in the order in which they did.
	for len(ended) > 0 {
		if r := <-ended; first == nil {
			first = r.outcome()
		}
	}
	return first
}

// running is a part in one life of its group.
type running struct {
	Part
	cancel context.CancelFunc

	// asked is closed before the part is told to stop, by the group's goroutine.
	asked chan struct{}
	// done is closed when Run has returned; err and early are set before.
	done  chan struct{}
	err   error
	early bool // Run returned before it was asked to stop
}

// start runs the part with a context that does not end with ctx: a group that is
// told to stop stops its parts in order, not all at once.
func start(ctx context.Context, p Part, ended chan<- *running) *running {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{Part: p, cancel: cancel, asked: make(chan struct{}), done: make(chan struct{})}
	go func() {
		r.err = p.Run(ctx)
		select {
		case <-r.asked:
		default:
			r.early = true
		}
		ended <- r // before done, so that who waited for done finds it there
		close(r.done)
	}()
	return r
}

// stop returns when the part has ended. Its error says why the part was cut off, nil if it was not.
func (r *running) stop(ctx context.Context) (cut error) {
	defer r.cancel()
	close(r.asked)
	if r.Stop == nil {
		r.cancel()
		<-r.done
		return nil
	}
	if cut = r.Stop(ctx); cut == nil {
		select {
		case <-r.done:
			return nil
		case <-ctx.Done():
			cut = context.Cause(ctx)
		}
	}
	r.cancel()
	<-r.done
	return cut
}

// outcome is the part's error, as the group reports it. It may be called once done.
func (r *running) outcome() error {
	switch {
	case r.err == nil && r.early:
		return fmt.Errorf("%s: %w", r.Name, ErrEnded)
	case r.err == nil, !r.early && errors.Is(r.err, context.Canceled):
		return nil
	default:
		return fmt.Errorf("%s: %w", r.Name, r.err)
	}
}
