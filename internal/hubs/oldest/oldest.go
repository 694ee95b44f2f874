// Package oldest remembers when the oldest events that groups have yet to read were stored. To find that out an
// event has to be read, and its time never changes: so a group at rest costs nothing, however often it is looked at.
package oldest

import (
	"sync"
	"time"
)

// maxKept is how many are kept: twice what the metrics of a yard tell of. When there are more, those of groups that are
// gone may be among them, and all are forgotten.
const maxKept = 10_000

// Times are those of the oldest events, by whose they are. The zero value works, and all methods may be called by many
// goroutines at once.
type Times struct {
	mu  sync.Mutex
	all map[string]event // guarded by mu
}

type event struct {
	number int64
	stored time.Time
}

// Of gives when an event was stored, which is the oldest for somebody. It is read where it was not the oldest before; a
// zero time says that it is not there, be it not there yet, and is not kept.
func (t *Times) Of(whose string, number int64, read func() (time.Time, error)) (time.Time, error) {
	t.mu.Lock()
	e, known := t.all[whose]
	t.mu.Unlock()
	if known && e.number == number {
		return e.stored, nil
	}
	stored, err := read()
	if err != nil || stored.IsZero() {
		return stored, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || len(t.all) >= maxKept {
		t.all = make(map[string]event)
	}
	t.all[whose] = event{number, stored}
	return stored, nil
}
