package functions

import (
	"context"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// place is where a function's poison goes.
type place interface {
	// writer gives what writes the letters of one partition of the function's hub.
	writer(partition string) writer
	String() string
}

// writer writes the letters of one partition, one after the other.
type writer interface {
	// partition is where in the place they go; empty: it has no partitions.
	partition() string
	// put writes a letter. nil: it is durable.
	put(ctx context.Context, intent triage.Intent, l Letter) error
	close(ctx context.Context)
}

// sinkPlace is a Sink of the user's: letters are written at least once.
type sinkPlace struct{ Sink }

func (s sinkPlace) writer(string) writer { return s }
func (s sinkPlace) partition() string    { return "" }
func (s sinkPlace) put(ctx context.Context, _ triage.Intent, l Letter) error {
	return s.Put(ctx, l)
}
func (s sinkPlace) close(context.Context) {}
