package topics

import (
	"slices"
	"sync"
	"time"
)

// deadlines are the moments at which definitions change by themselves, at most one for each key.
// To find those that are due it looks at all: that takes less than storing the change of one.
type deadlines struct {
	// sooner receives when there is an earlier one than due last gave as the next.
	sooner chan struct{}

	mu   sync.Mutex
	all  map[string]time.Time // guarded by mu
	next time.Time            // the earliest that anybody was notified of; guarded by mu
}

func newDeadlines() *deadlines {
	return &deadlines{sooner: make(chan struct{}, 1), all: make(map[string]time.Time)}
}

// set notes the moment of a key, in place of any other; the zero time is none.
func (d *deadlines) set(key string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.IsZero() {
		delete(d.all, key)
		return
	}
	d.all[key] = at
	if d.next.IsZero() || at.Before(d.next) {
		d.next = at
		select {
		case d.sooner <- struct{}{}:
		default: // an earlier notification has yet to be received
		}
	}
}

// due takes the keys whose moment has come, and gives the next moment; zero: there is none.
func (d *deadlines) due(now time.Time) (keys []string, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, at := range d.all {
		switch {
		case !at.After(now):
			delete(d.all, key)
			keys = append(keys, key)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.Sort(keys)
	d.next = next
	return keys, next
}
