package sim

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errDead is what a process that was killed would never live to see.
var errDead = errors.New("this process is dead")

// gate is what all calls of one run of an instance pass.
type gate struct {
	dead chan struct{} // closed by kill

	mu   sync.Mutex
	thaw chan struct{} // nil: open; closed when a pause ends. Guarded by mu.
	over bool          // guarded by mu
}

func newGate() *gate { return &gate{dead: make(chan struct{})} }

// kill: from now on nothing of this run has any effect.
func (g *gate) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		close(g.dead)
	}
}

// pause holds everything until the function it gives is called.
func (g *gate) pause() (resume func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	thaw := make(chan struct{})
	g.thaw = thaw
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(thaw)
		if g.thaw == thaw {
			g.thaw = nil
		}
	}
}

// pass waits while the process is paused, whatever becomes of contexts, which a paused process
// does not notice.
func (g *gate) pass() error {
	for {
		g.mu.Lock()
		thaw, over := g.thaw, g.over
		g.mu.Unlock()
		if over {
			return errDead
		}
		if thaw == nil {
			return nil
		}
		select {
		case <-thaw:
		case <-g.dead:
		}
	}
}

// wait lets time pass for a call: an error if the caller goes away or dies first.
func (g *gate) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-g.dead:
		return errDead
	}
}
