package sim

import (
	"sync"
	"time"
)

// sky is how the store is.
type sky int

const (
	fair  sky = iota
	slow      // calls take seconds
	down      // nothing is read or written
	lossy     // some answers to writes are lost, others come late
)

func (s sky) String() string { return [...]string{"fine", "slow", "down", "lossy"}[s] }

// weather is what befalls all instances at once.
type weather struct {
	mu    sync.Mutex
	store sky  // guarded by mu
	line  bool // connections to the hub break; guarded by mu
	jump  time.Duration
}

func (w *weather) set(s sky) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store = s
}

func (w *weather) setLine(bad bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = bad
}

func (w *weather) now() sky {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.store
}

func (w *weather) badLine() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line
}

// setClock makes wall clocks jump: those of the store and of the hub, which are all that
// can be told apart from the monotonic one here.
func (w *weather) setClock(jump time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jump = jump
}

func (w *weather) clock() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jump
}
