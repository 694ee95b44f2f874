// Package pending is one event on its way to one subscription, with what has become of it so far,
// and the form in which it waits in retry logs, parked logs and dead-letter logs. A pending
// delivery carries its event, so that it needs nothing else: neither the topic's log, which may be
// trimmed, nor a source hub that keeps less. It is pure.
package pending

import (
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/tracing"
)

// Delivery is one. Times have millisecond precision.
type Delivery struct {
	// Subscription is the subscription's ID; Source, Partition and Sequence say where the event
	// was published: together they name it.
	Subscription string
	Source       string
	Partition    int
	Sequence     int64
	// Published is when the event was accepted. Alive is what its time to live counts from:
	// the same, or when it was redriven.
	Published, Alive time.Time
	// Attempts made so far, and how the newest ended.
	Attempts    int
	LastAttempt time.Time
	LastOutcome retry.Outcome
	LastStatus  int
	// Due is when a pending delivery in a retry log may be tried.
	Due time.Time
	// Reason is why it is a dead letter; empty for others. Redrives counts how often it was one
	// and was sent again.
	Reason   string
	Redrives int
	// Hops is how often the event was passed on before: package hops.
	Hops int
	// Trace is the one that the event belongs to, where its form has no place for it: a CloudEvent says it
	// itself. See TraceContext.
	Trace tracing.Context `json:",omitzero"`
	// History is the newest attempts that failed, the oldest first: at most MaxHistory, also from
	// before it was redriven.
	History []Attempt
	// Form and Event are the stored event.
	Form  schema.Form
	Event []byte
}

// MaxHistory is how many attempts are kept, maxSaid how much of what an endpoint answered to one.
const (
	MaxHistory = 10
	maxSaid    = 100
)

// Attempt is one that failed.
type Attempt struct {
	// At is when it began, Took how long it lasted: in milliseconds, too.
	At      time.Time
	Took    time.Duration
	Outcome retry.Outcome
	Status  int
	// Said is the beginning of the answer, or why there was none.
	Said string
	// Probe: it was the one request that probation allows.
	Probe bool
}

// Note adds an attempt to the history, and lets go of the oldest where that is full.
func (p *Delivery) Note(a Attempt) {
	a.At, a.Took = a.At.UTC().Truncate(time.Millisecond), a.Took.Truncate(time.Millisecond)
	a.Said = short(a.Said)
	kept := p.History[max(0, len(p.History)-MaxHistory+1):]
	p.History = append(slices.Clone(kept), a) // others may have copies of this delivery
}

// TraceContext is the trace that the event belongs to, whoever says so. It reads the event.
func (p *Delivery) TraceContext() tracing.Context {
	if p.Trace.Valid() || p.Form != schema.CloudEventForm {
		return p.Trace
	}
	var e schema.Envelope
	if e.Scan(p.Form, p.Event) != nil {
		return tracing.Context{}
	}
	return e.TraceContext()
}

// short is the beginning of a text, on one line.
func short(text string) string {
	if len(text) > maxSaid {
		text = text[:maxSaid]
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}
