package functions

import (
	"errors"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/tracing"
)

// The keys of log lines.
const (
	keyFunction  = "function"
	keyHub       = "hub"
	keyGroup     = "group"
	keyPartition = "partition"
	keyError     = "error"
)

// Config is a host's. The zero Config works with a yard.
type Config struct {
	// Store keeps leases, checkpoints, attempts and circuits; nil: the yard that has the hub. Hosts
	// that share functions share it.
	Store processor.Store
	// ID names this instance; empty: a generated one. An instance with an id of its own that comes
	// back soon keeps its partitions, as with processor.Config.ID.
	ID string
	// Lease, Renew, Poll, Handoff and Stop are the processor's, with its defaults (30 s, 10 s,
	// Renew, 20 s, 20 s). Poll is also how often the circuit is looked at in a store that cannot be
	// watched; there 0 means 1 s.
	Lease, Renew, Poll, Handoff, Stop time.Duration
	// OnError gets every error that the host continues after, each failed call
	// included: an *Error says where. Calls may overlap. nil: it is logged. Of failed calls the
	// first and then one a minute are logged anyway, for each function.
	OnError func(error)
	// OnCircuit is called when this instance sees that a circuit has changed; it is quick. nil:
	// nobody, but each change is logged anyway.
	OnCircuit func(Circuit)
	// OnCall is told of each call when it has ended, by the goroutine that made it; it is quick, and does not
	// keep the batch. Calls may overlap. nil: nobody is.
	OnCall func(*Batch, Ended)
	// Log; nil: slog.Default().
	Log *slog.Logger
	// Tracer makes a span of each call with events that carry a trace, within which the handler is called;
	// nil: there are none.
	Tracer tracing.Tracer
}

// processor is the configuration of a function's processor.
func (f *function) processor() processor.Config {
	c, b := f.host.cfg, f.Binding
	return processor.Config{
		Group: b.Group, Store: f.store, ID: f.host.id,
		MaxBatch: b.MaxBatch, MinBatch: b.MinBatch, MaxWait: b.MaxWait, Prefetch: b.Prefetch, Lanes: b.Lanes,
		Start: b.Start, Checkpoints: b.Checkpoints,
		Lease: c.Lease, Renew: c.Renew, Poll: c.Poll, Handoff: c.Handoff, Stop: c.Stop,
		CallWhenIdle:   true, // for checkpoints that had to wait for the circuit
		HandlerTimeout: -1,   // calls have deadlines of ours; retries and open circuits are waited for as long as it takes
		OnError: func(err error) {
			if in, ok := errors.AsType[*processor.Error](err); ok {
				f.report(in.Partition, in.Doing, in.Err)
				return
			}
			f.report("", "run", err)
		},
		Log: c.Log.With(keyFunction, f.name), // it adds hub and group itself
	}
}
