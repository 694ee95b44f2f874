package mirror

import (
	"maps"
	"slices"
	"sync"
)

// Listeners are functions that are called when something has changed: for whoever makes a snapshot
// of a table, and others who want to know when it is replaced. The zero value is ready. All methods
// may be called by many goroutines at once.
type Listeners struct {
	mu   sync.Mutex
	last int            // guarded by mu
	all  map[int]func() // guarded by mu
}

// Add gives what takes the function out again; safe twice.
func (l *Listeners) Add(f func()) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[int]func())
	}
	l.last++
	id := l.last
	l.all[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, id)
	}
}

// Notify calls each function, without the lock: it may take itself out.
func (l *Listeners) Notify() {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
}
