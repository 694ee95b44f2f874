package functions

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/poison"
)

// Sink is a target for poison events. It is used by many goroutines at once.
type Sink interface {
	// Put returns nil once the poison event is durable. Until it does the event's partition waits.
	// It may be called again for the same poison event, by another instance too, after an error or
	// a crash; the poison event's ID is then the same.
	Put(ctx context.Context, p PoisonEvent) error
	// String names the target.
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
func (p PoisonEvent) full() poison.Record {
	return poison.Record{
		ID: p.ID, Function: p.Function, Hub: p.Hub, Group: p.Group, Partition: p.Partition, Sequence: p.Sequence,
		Offset: p.Event.Offset, Enqueued: p.Event.Enqueued, Reason: p.Reason, Stack: p.Stack,
		Attempts: p.Attempts, Deaths: p.Deaths, At: p.At, Instance: p.Instance, Event: p.Event,
	}
}
