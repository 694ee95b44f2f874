package topics

import (
	"maps"
	"slices"
	"sync"
)

// listeners are functions that are called when something has changed. The zero value is
// ready.
type listeners struct {
	mu   sync.Mutex
	last int
	all  map[int]func() // guarded by mu
}

// add gives what takes the function out again; safe twice.
func (l *listeners) add(f func()) (remove func()) {
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

// tell calls each function, without the lock: it may take itself out.
func (l *listeners) tell() {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	for _, f := range all {
		f()
	}
}
