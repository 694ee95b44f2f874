package processor

import (
	"sync"
	"time"
)

// health is what a partition shows of itself: its state, the last error, the attempt under way. The
// pump, its lanes and the coordinator change it; Config.OnState hears of every change, in order.
type health struct {
	notify    func(State)
	notifying sync.Mutex // held while notify is called, and never under mu

	mu       sync.Mutex // guards what follows
	state    State
	since    time.Time
	ending   bool // only Draining, Stalled and Closed may follow
	err      error
	attempt  int // of the newest call
	retrying int // batches that have failed and come again; more than one with lanes
}

// set changes the state and notifies of it. What is being given up stays so, and what has stalled
// does not look like an orderly end.
func (h *health) set(s State, err error) {
	h.mu.Lock()
	final := s == Draining || s == Stalled || s == Closed
	if err != nil || s == Running {
		h.err = err
	}
	ignored := h.state == s || h.ending && !final || h.state == Stalled && s == Draining
	if !ignored {
		h.state, h.since = s, time.Now()
		h.ending = h.ending || final
	}
	h.mu.Unlock()
	if !ignored {
		h.announce(s)
	}
}

// announce notifies of a state.
func (h *health) announce(s State) {
	h.notifying.Lock()
	defer h.notifying.Unlock()
	h.notify(s)
}

// end is for a partition that is given up in whatever state it is.
func (h *health) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
}

// fault notes an error, until the next success.
func (h *health) fault(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// startOver is for a partition that begins again from its checkpoint: no batch is left to be
// retried.
func (h *health) startOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retrying = 0
}

// call notes which attempt at a batch begins.
func (h *health) call(attempt int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempt = attempt
}

// failed notes that a batch has failed in this attempt and comes again.
func (h *health) failed(attempt int) {
	if attempt == 1 {
		h.mu.Lock()
		h.retrying++
		h.mu.Unlock()
	}
	h.set(Retrying, nil)
}

// succeeded notes that a batch is done after so many attempts. The partition is well when no other
// is to be retried.
func (h *health) succeeded(attempts int) {
	h.mu.Lock()
	if attempts > 1 {
		h.retrying--
	}
	well := h.retrying == 0 && (h.err != nil || h.state == Retrying)
	h.mu.Unlock()
	if well {
		h.set(Running, nil)
	}
}

// fill adds to a status what is known here.
func (h *health) fill(s *Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.State, s.Since, s.Attempt, s.Err = h.state, h.since, h.attempt, h.err
}
