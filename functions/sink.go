package functions

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/poison"
)

// Sink is a place for poison events. It is used by many goroutines at once.
type Sink interface {
	// Put returns nil once the poison event is durable. Until it does the event's partition waits.
	// It may be called again for the same poison event, by another instance too, after an error or
	// a crash; the poison event's ID is then the same.
	Put(ctx context.Context, l PoisonEvent) error
	// String names the place.
	String() string
}

// PoisonEvent is an event that used up its retries.
type PoisonEvent struct {
	// ID is function/hub/partition/sequence.
	ID         string
	Function   string
	Hub, Group string
	Partition  string
	Sequence   int64
	// Reason is the newest error; Stack is that of a panic, empty if there was none.
	Reason, Stack string
	// Attempts are the calls for it that came to nothing, as Batch.Attempt counts them; Deaths
	// those of them in which an instance died.
	Attempts, Deaths int
	// At is when it was put away, Instance by whom.
	At       time.Time
	Instance string
	// Event is the original, as it was read.
	Event event.Event
}

// full is the poison event in the form that hubs and topics get.
func (l PoisonEvent) full() poison.Record {
	return poison.Record{
		ID: l.ID, Function: l.Function, Hub: l.Hub, Group: l.Group, Partition: l.Partition, Sequence: l.Sequence,
		Offset: l.Event.Offset, Enqueued: l.Event.Enqueued, Reason: l.Reason, Stack: l.Stack,
		Attempts: l.Attempts, Deaths: l.Deaths, At: l.At, Instance: l.Instance, Event: l.Event,
	}
}
