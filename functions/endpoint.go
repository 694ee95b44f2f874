package functions

import (
	"sync"

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
func (e *endpoint) succeeded(at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown.Succeeded(at)
}

// ended is told of a call by somebody that failed, the last one of which for these events ended
// since. It gives what the others have met, and the time.
func (e *endpoint) ended(out outcome, since, by int64) (triage.Sight, int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sight := e.shown.See(since, by)
	if out.down() {
		e.shown.Down(out.began, by)
	}
	return sight, e.shown.Now()
}
