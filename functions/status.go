package functions

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/hubs/balance"
	"github.com/eventyard/eventyard/processor"
)

// Circuit is the state of a function's circuit.
type Circuit struct {
	Function, Hub, Group string
	// State is closed, open, half-open or held (by an operator); unknown before the store has
	// answered for the first time, when nothing is called.
	State string
	// Term rises with every change. Incident names one opening, until it is closed again.
	Term     int64
	Incident string
	// Since, By and Reason say when it changed, by which instance or operator, and why.
	Since      time.Time
	By, Reason string
	// Failures within the window as known here; Errors the newest ones when it opened.
	Failures int
	Errors   []string
}

// Status is what this instance knows of a function.
type Status struct {
	Function, Hub, Group string
	Circuit              Circuit
	// Partitions are those that this instance owns.
	Partitions []processor.Status

	// What follows is counted since this instance started: calls, and of those the ones that
	// failed, panicked and took too long;
	Calls, Failed, Panics, Timeouts int64
	// events that are done, were given to the function again, were skipped, put away and dropped.
	Done, Retried, Skipped, Poisoned, Dropped int64

	// Lag is that of this instance's partitions; Recommended how many instances it is worth, each
	// with a part of these partitions.
	Lag         int64
	Recommended int
	// Waiting says for what a partition waits whose poison cannot be written, and what to do about
	// it; empty: for nothing.
	Waiting string
	// LastError is the newest error, of a call or of anything else, and stays when all is well
	// again.
	LastError   string
	LastErrorAt time.Time
}

// Status reports on each function, in the order of Handle. Before Run it is empty.
func (h *Host) Status() []Status {
	var all []Status
	for _, f := range h.started() {
		all = append(all, f.status())
	}
	return all
}

func (f *function) status() Status {
	c := &f.counts
	s := Status{
		Function: f.name, Hub: f.Hub, Group: f.Group, Circuit: f.circuitOf(f.circuit.Record()), Partitions: f.work.Status(),
		Calls: c.calls.Load(), Failed: c.failed.Load(), Retried: c.retried.Load(),
		Done: c.done.Load(), Skipped: c.skipped.Load(), Poisoned: c.poisoned.Load(), Dropped: c.dropped.Load(),
		Panics: c.panics.Load(), Timeouts: c.timeouts.Load(),
	}
	for _, p := range s.Partitions {
		s.Lag += p.Lag
	}
	s.Recommended = balance.Recommend(int(s.Lag), f.Target, len(s.Partitions))
	s.LastError, s.LastErrorAt = f.last.get()
	s.Waiting = f.waiting.get()
	return s
}

func (f *function) circuitOf(r breaker.Record, failures int) Circuit {
	c := Circuit{
		Function: f.name, Hub: f.Hub, Group: f.Group, State: or(string(r.State), "unknown"), Term: r.Term, Incident: r.Incident,
		Since: r.Since, By: r.By, Reason: r.Reason, Failures: failures,
	}
	for _, s := range r.Samples {
		c.Errors = append(c.Errors, s.Error)
	}
	return c
}

// counts are a function's since this instance started.
type counts struct {
	calls, failed, panics, timeouts           atomic.Int64 // calls
	done, retried, skipped, poisoned, dropped atomic.Int64 // events
}

// call counts one. If it was cancelled nothing came of it.
func (c *counts) call(b *Batch, out outcome) {
	c.calls.Add(1)
	if b.Attempt > 1 {
		c.retried.Add(int64(len(b.Events)))
	}
	if out.cancelled {
		return
	}
	if out.bad() {
		c.failed.Add(1)
	}
	if out.timedOut {
		c.timeouts.Add(1)
	}
	if out.err != nil && stackOf(out.err) != "" {
		c.panics.Add(1)
	}
}

// lastError is the newest one.
type lastError struct {
	mu   sync.Mutex
	text string    // guarded by mu
	at   time.Time // guarded by mu
}

func (l *lastError) set(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.at = reason(err), time.Now()
}

func (l *lastError) get() (string, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text, l.at
}

// waiting is for what partitions wait whose poison cannot be written.
type waiting struct {
	mu   sync.Mutex
	what map[string]string // by partition; guarded by mu
}

// set notes it; empty: it waits no longer.
func (w *waiting) set(partition, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if what == "" {
		delete(w.what, partition)
		return
	}
	if w.what == nil {
		w.what = map[string]string{}
	}
	w.what[partition] = what
}

// get is what one of them waits for: they share the place.
func (w *waiting) get() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range w.what {
		return what
	}
	return ""
}

// sparing logs what may come in hundreds a second: one line at once, and then one now and then that
// says how many there were since.
type sparing struct {
	every time.Duration
	mu    sync.Mutex
	last  time.Time // guarded by mu
	quiet int       // guarded by mu: not told since
}

func (s *sparing) warn(log *slog.Logger, message string, args ...any) {
	s.mu.Lock()
	now := time.Now()
	if now.Sub(s.last) < s.every {
		s.quiet++
		s.mu.Unlock()
		return
	}
	if s.quiet > 0 {
		args = append(args, "untold", s.quiet)
	}
	s.last, s.quiet = now, 0
	s.mu.Unlock()
	log.Warn(message, args...)
}
