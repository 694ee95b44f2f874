package functions

import (
	"context"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// target is where a function's poison goes.
type target interface {
	// writer gives what writes the poison events of one partition of the function's hub.
	writer(partition string) writer
	String() string
}

// writer writes the poison events of one partition, one after the other.
type writer interface {
	// partition is where in the target they go; empty: it has no partitions.
	partition() string
	// put writes a poison event. nil: it is durable.
	put(ctx context.Context, intent triage.Intent, l PoisonEvent) error
	close(ctx context.Context)
}

// sinkTarget is a Sink of the user's: poison events are written at least once.
type sinkTarget struct{ Sink }

func (s sinkTarget) writer(string) writer { return s }
func (s sinkTarget) partition() string    { return "" }
func (s sinkTarget) put(ctx context.Context, _ triage.Intent, l PoisonEvent) error {
	return s.Put(ctx, l)
}
func (s sinkTarget) close(context.Context) {}
