package processor

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/tracing"
)

// Strategy is how partitions are taken from others.
type Strategy int

const (
	// Balanced takes all of its share that is free at once, and what others have too many of one at
	// a time.
	Balanced Strategy = iota
	// Greedy takes its whole share at once.
	Greedy
)

// Config is what a processor works with. The zero Config works with a yard's hub.
type Config struct {
	// Group is the consumer group; empty means $Default.
	Group string
	// Store keeps leases and checkpoints; nil means the yard that has the hub, over the
	// same connection.
	Store Store
	// ID names this instance in the group; empty means a generated one. An instance with an id of
	// its own that comes back soon keeps its partitions; a yard gives them to another process only
	// when the leases have run out, unless it has the right to manage. Two at once are
	// ErrDuplicateID. It is made of letters, digits, '-', '_', '.', ':' and '$', at most 150 of
	// them.
	ID string

	// MaxBatch is the most events of one call; 0 means 100. Prefetch is how many the hub
	// sends ahead; 0 means 300, and it is at least MaxBatch.
	MaxBatch, Prefetch int
	// MinBatch is how many events to wait for, for at most MaxWait; 0 means 1: whatever there is.
	// It has no effect with Lanes.
	MinBatch int
	// MaxWait is how long an idle partition waits before, with CallWhenIdle, the handler is called
	// with an empty batch, and how long to wait for MinBatch; 0 means 1 s.
	MaxWait      time.Duration
	CallWhenIdle bool
	// Start says where a partition without checkpoint begins; nil means hub.Earliest. It is
	// asked only then. hub.Latest is checkpointed at once, so that nothing is missed from then on.
	Start func(partition string) hub.Position
	// OutOfRange says where a partition continues whose checkpoint cannot be right: beyond the end,
	// or of an earlier hub of that name; also where Start gives a position beyond the end. It is
	// reported in any case.
	OutOfRange OutOfRange

	// Lease is how long an instance that died keeps its partitions, Renew how often a living one
	// shows that it lives; 0 means 30 s, and a third of Lease. Renew is at most half of Lease.
	Lease, Renew time.Duration
	// Poll is how often a store that cannot be watched is looked at; 0 means Renew.
	Poll     time.Duration
	Strategy Strategy
	// Handoff is how long the owner of a partition that is wanted by another instance may take to
	// finish its call and release it, before it is taken; 0 means 20 s.
	Handoff time.Duration
	// Stop is how long Run takes at most to return when its context has ended; 0 means 20 s.
	// Calls have three quarters of it before their contexts end. A call that ignores
	// that, too, is left behind, and its partition waits for its lease to end.
	Stop time.Duration

	// Checkpoints says when checkpoints are written.
	Checkpoints Checkpoints
	// Lanes, where it is above 1, runs so many calls at once for each partition, events of one key
	// always in order; events without a key are dealt out in turn. 0 means order in the partition.
	Lanes int

	// Backoff is between the calls for a batch that failed.
	Backoff Backoff
	// Continue skips a batch that failed, after reporting to OnError: the old Event
	// Processor Host's way. By default the batch comes again until it succeeds.
	Continue bool
	// HandlerTimeout ends the context of a call that takes longer; 0 means 10 min, negative none. A
	// call that ignores it for another Lease loses its partition.
	HandlerTimeout time.Duration
	// StallAfter is how long a partition may have events to read and get none before its
	// reader is reopened, and after as long again the partition released; 0 means 2 min.
	StallAfter time.Duration

	// OnError gets every error: an *Error says of which partition and in doing
	// what. Calls may overlap. nil means that they are logged.
	OnError func(error)
	// OnState is called when a partition's state changes; it is quick. nil means nobody.
	OnState func(Status)
	// Log; nil means slog.Default().
	Log *slog.Logger
	// Tracer makes a span of each call with events that carry a trace, within which the handler is called;
	// nil means that there are none.
	Tracer tracing.Tracer
}

// OutOfRange is what is done about a checkpoint that cannot be right.
type OutOfRange int

const (
	// FromEarliest reads everything that is there: nothing is lost.
	FromEarliest OutOfRange = iota
	// FromLatest reads what comes from now on.
	FromLatest
	// Fail leaves the partition unread, in state Faulted, until an operator moves the checkpoint.
	Fail
)

// Checkpoints says when checkpoints are written. The zero value writes each one when
// Batch.Checkpoint is called.
type Checkpoints struct {
	// Auto marks a batch as done when the handler returns nil.
	Auto bool
	// Every and Events, where one is set, let Batch.Checkpoint (and Auto) only mark: what is marked
	// is written after so long or so many events, whichever is first, when the partition is idle,
	// and before it is given up.
	Every  time.Duration
	Events int
}

// deferred: checkpoints are marked first and written later.
func (c Checkpoints) deferred() bool { return c.Every > 0 || c.Events > 0 }

// Backoff is an exponential delay with jitter; zero means 100 ms to 30 s.
type Backoff struct{ First, Max time.Duration }

// delay is what is waited after so many failures, from 1: doubled each time, with up to a
// quarter taken off at random so that instances do not march in step.
func (b Backoff) delay(failures int) time.Duration {
	d := b.First
	for i := 1; i < failures && d < b.Max; i++ {
		d *= 2
	}
	d = min(d, b.Max)
	return d - rand.N(d/4+1)
}

// foreignLease is how long the lease of an owner that keeps no presence lives: that is
// how long the official processors wait for each other.
const foreignLease = 2 * time.Minute

func (c Config) withDefaults() Config {
	c.Group = cmp.Or(c.Group, "$Default")
	c.MaxBatch = cmp.Or(c.MaxBatch, 100)
	c.MinBatch = cmp.Or(c.MinBatch, 1)
	c.Prefetch = max(cmp.Or(c.Prefetch, 300), c.MaxBatch)
	c.MaxWait = cmp.Or(c.MaxWait, time.Second)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Renew = cmp.Or(c.Renew, c.Lease/3)
	c.Poll = min(cmp.Or(c.Poll, c.Renew), c.Renew)
	c.Handoff = cmp.Or(c.Handoff, 20*time.Second)
	c.Stop = cmp.Or(c.Stop, 20*time.Second)
	c.Lanes = max(c.Lanes, 1)
	c.Backoff.First = cmp.Or(c.Backoff.First, 100*time.Millisecond)
	c.Backoff.Max = max(cmp.Or(c.Backoff.Max, 30*time.Second), c.Backoff.First)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 10*time.Minute)
	c.StallAfter = cmp.Or(c.StallAfter, 2*time.Minute)
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Start == nil {
		c.Start = func(string) hub.Position { return hub.Earliest }
	}
	return c
}

func (c Config) validate() error {
	for name, d := range map[string]time.Duration{
		"MaxWait": c.MaxWait, "Lease": c.Lease, "Renew": c.Renew, "Poll": c.Poll, "Handoff": c.Handoff,
		"Stop": c.Stop, "Backoff.First": c.Backoff.First, "StallAfter": c.StallAfter,
	} {
		if d < 0 {
			return fmt.Errorf("processor config: %s is %v, below zero", name, d)
		}
	}
	switch {
	case c.MaxBatch < 0 || c.MinBatch < 0 || c.Checkpoints.Events < 0 || c.Checkpoints.Every < 0:
		return fmt.Errorf("processor config: MaxBatch, MinBatch, Checkpoints.Events and Checkpoints.Every are not below zero")
	case c.MinBatch > c.MaxBatch:
		return fmt.Errorf("processor config: MinBatch %d is above MaxBatch %d", c.MinBatch, c.MaxBatch)
	case c.Renew > c.Lease/2:
		return fmt.Errorf("processor config: Renew %v is above half of Lease %v", c.Renew, c.Lease)
	case !validID(c.ID):
		return fmt.Errorf("processor config: ID %q: use 1 to 150 letters, digits, '-', '_', '.', ':' and '$'", c.ID)
	}
	return nil
}

func validID(id string) bool {
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case r == '-', r == '_', r == '.', r == ':', r == '$':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 150
}

// storeTimeout bounds one call of the store: two that fail leave time for a third
// before the leases end.
func (c Config) storeTimeout() time.Duration { return (c.Lease - c.Renew) / 2 }
