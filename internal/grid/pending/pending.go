// Package pending is one event on its way to one subscription, with what has become of it so far,
// and the form in which it waits in retry logs, parked logs and dead-letter logs. A pending
// delivery carries its event, so that it needs nothing else: neither the topic's log, which may be
// trimmed, nor a source hub that keeps less. It is pure.
package pending

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
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
	// Form and Event are the stored event.
	Form  schema.Form
	Event []byte
}
