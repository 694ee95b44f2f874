// Package breaker decides when a function's circuit opens and closes, and has the records that all
// instances share. It is pure: counts, state, time and an operator's word in, the next state out.
//
//	from       when                                                      to
//	Closed     more than Failures within Within, over all instances      Open
//	Closed     for Within, calls found nothing but a program that is     Open
//	           down, in all instances that call it
//	Open       its wait is over and an instance has an event to try      HalfOpen, that instance is the prober
//	HalfOpen   the event was handled                                     Closed
//	HalfOpen   the event failed, or could not be tried                   Open
//	HalfOpen   the prober has done nothing for ProbeDeadline             HalfOpen, with another prober
//	all        an operator's Hold                                        Held
//	all        an operator's Resume                                      Closed
//
// Every change raises Record.Term by one. Failures are counted
// under the term in which they happened, so that whatever closes a circuit also clears its window.
package breaker

import "time"

// State of a circuit.
type State string

const (
	Closed   State = "closed"    // events are handled
	Open     State = "open"      // too many failures: nothing is read, no checkpoint moves
	HalfOpen State = "half-open" // one instance tries one event
	Held     State = "held"      // by an operator, who alone ends it
)

// Sample is one failure as people see it.
type Sample struct {
	At        time.Time `json:"at"`
	Partition string    `json:"partition,omitempty"`
	Sequence  int64     `json:"sequence"`
	Error     string    `json:"error"`
}

// Event is where an event is, in the hub of a function.
type Event struct {
	Partition string `json:"partition"`
	Sequence  int64  `json:"sequence"`
}

// Record is the circuit's state, one entry that all instances share and change by
// compare-and-set. The zero Record is a closed circuit that was never open.
type Record struct {
	State State `json:"state"`
	// Term rises with every change.
	Term int64 `json:"term"`
	// Incident names one opening, from when it was closed to when it is closed again, at random:
	// links and notices are about it. Empty while closed.
	Incident string `json:"incident,omitempty"`
	// Since, By and Reason are for show: when by the writer's clock, which instance or operator,
	// and why.
	Since  time.Time `json:"since,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Opened is when the incident began; Failures and Samples what it began with (few, and each
	// short).
	Opened   time.Time `json:"opened,omitzero"`
	Failures int       `json:"failures,omitempty"`
	Samples  []Sample  `json:"samples,omitempty"`
	// Prober is the instance that tries an event, in HalfOpen; Trips the failed probes of this
	// incident.
	Prober string `json:"prober,omitempty"`
	Trips  int    `json:"trips,omitempty"`
	// Tries is the event that the prober tries; nil: that is not known, as in records of a release before.
	Tries *Event `json:"tries,omitempty"`
	// Untried: the last probe was given back without a call, so that the next need not wait as
	// long.
	Untried bool `json:"untried,omitempty"`
	// Decided is, while it is closed, how many failures instances had in all when they last decided
	// that an event may be put away, by instance: only where their tally may not show it yet.
	Decided map[string]int64 `json:"decided,omitempty"`
	// Policy is that of whoever changed the record last, for show.
	Policy Policy `json:"policy,omitzero"`
}

// Closed tells whether events are handled.
func (r Record) Closed() bool { return r.State == Closed || r.State == "" }

// Tally is one instance's rolling count as it is shared: how many failures, by age when it was
// written. Only those of the circuit's present Term count, so closing a circuit clears the window.
type Tally struct {
	Term    int64    `json:"term"`
	Buckets []Bucket `json:"buckets,omitempty"` // the oldest first
	// Total counts all, from when the instance first started.
	Total int64 `json:"total"`
	// Down is for how long, from the first such call to the last, all calls found that what the
	// function needs is down; 0: the last did not. Up is how long ago, when the tally was written, a
	// call last found otherwise; 0: longer than the window.
	Down time.Duration `json:"down,omitempty"`
	Up   time.Duration `json:"up,omitempty"`
	// Good is how long ago, when the tally was written, the newest call began that succeeded; 0:
	// there was none.
	Good time.Duration `json:"good,omitempty"`
}

// Bucket is failures of about one age.
type Bucket struct {
	Age   time.Duration `json:"age"` // when the tally was written
	Count int           `json:"n"`
}
