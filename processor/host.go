package processor

import "context"

// Worker is the host form: one object per partition owned.
type Worker interface {
	// Open is called once, before any event. After an error the partition is released, and
	// taken again after a back-off, here or elsewhere, with a new worker; Close is not called.
	Open(ctx context.Context, p *Partition) error
	// ProcessEvents is called with one batch at a time. After an error the same batch
	// comes again, with its attempt number.
	ProcessEvents(ctx context.Context, b *Batch) error
	// ProcessError gets the errors of this partition. It may overlap the others.
	ProcessError(ctx context.Context, p *Partition, err error)
	// Close is called once after the last ProcessEvents has returned; it may still checkpoint,
	// which fails once another instance owns the partition.
	Close(ctx context.Context, p *Partition, why Reason) error
}

// Reason is why a partition is given up.
type Reason int

const (
	LeaseLost Reason = iota + 1 // another instance has it, or may have
	Handoff                     // it is given to another instance
	Shutdown                    // the processor stops
)

func (r Reason) String() string {
	switch r {
	case LeaseLost:
		return "lease lost"
	case Handoff:
		return "handoff"
	case Shutdown:
		return "shutdown"
	}
	return "unknown"
}

// handlerWorker is the client form: a function is all there is.
type handlerWorker struct{ handle Handler }

func (w handlerWorker) Open(context.Context, *Partition) error            { return nil }
func (w handlerWorker) ProcessEvents(ctx context.Context, b *Batch) error { return w.handle(ctx, b) }
func (w handlerWorker) ProcessError(context.Context, *Partition, error)   {}
func (w handlerWorker) Close(context.Context, *Partition, Reason) error   { return nil }
