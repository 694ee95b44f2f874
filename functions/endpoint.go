package functions

import (
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// endpoint is what this instance's calls have shown of whatever the function needs.
type endpoint struct {
	mu    sync.Mutex
	shown triage.Endpoint // guarded by mu
}

// begin gives the time of a call that begins.
func (e *endpoint) begin() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shown.Begin()
}

// succeeded is told of a call that began at a time.
func (e *endpoint) succeeded(at int64, began time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown.Succeeded(at, began)
}

// ended is told of a call by somebody for so many events, the last one of which ended since. It
// gives what the others have met, here and elsewhere, and the next since.
func (e *endpoint) ended(out outcome, events int64, since triage.Since, by int64, elsewhere triage.Elsewhere) (triage.Sight, triage.Since) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sight, now := e.shown.See(triage.Ended{Since: since, By: by, Alone: events == 1, Broke: out.broke(), Now: time.Now()}, elsewhere)
	if out.down() {
		e.shown.Down(out.began, by)
	}
	return sight, now
}

// anew is when the circuit was closed again.
func (e *endpoint) anew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown.Anew()
}
