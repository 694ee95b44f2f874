// Package listeners keeps functions that are called when something has changed, for whoever
// has a snapshot and others who want to know when it is replaced.
package listeners

import (
	"maps"
	"slices"
	"sync"
)

// List is some functions. The zero value is ready. All methods may be called by many goroutines
// at once.
type List struct {
	mu   sync.Mutex
	last int
	all  map[int]func() // guarded by mu
}

// Add gives what takes the function out again; safe twice.
func (l *List) Add(f func()) (remove func()) {
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
func (l *List) Notify() {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
}
