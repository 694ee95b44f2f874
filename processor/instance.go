package processor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/panics"
)

// maxAttaching is how many pumps read checkpoints and open readers at once.
const maxAttaching = 32

// instance is one run of a processor: what its goroutines share.
type instance struct {
	cfg       Config
	hub       Hub
	store     Store
	group     Group
	id        string
	nonce     string
	started   time.Time
	newWorker func(*Partition) Worker
	values    context.Context // Run's, without its end

	wakeup    chan struct{} // capacity 1: the coordinator has something to look at
	attaching chan struct{} // holds one for each pump that attaches
	opened    atomic.Bool   // some reader has been opened
	fatal     chan error    // capacity 1: why nothing can work

	mu    sync.Mutex // guards what follows
	info  hub.Info   // no Partitions: not known yet
	pumps map[string]*pump
}

// wake lets the coordinator make a round.
func (in *instance) wake() {
	select {
	case in.wakeup <- struct{}{}:
	default:
	}
}

func (in *instance) report(doing string, err error) { in.reportError(&Error{"", doing, err}) }

func (in *instance) reportError(err error) {
	if in.cfg.OnError != nil {
		if panicked := panics.Call(func() error { in.cfg.OnError(err); return nil }); panicked != nil {
			in.cfg.Log.Error("OnError panicked", withStack(panicked, "instance", in.id, "error", err, "panic", panicked)...)
		}
		return
	}
	in.cfg.Log.Warn("the processor carries on after an error",
		withStack(err, "hub", in.group.Hub, "group", in.group.Group, "instance", in.id, "error", err)...)
}

// logWaiting says why nothing happens, as whoever has just started an instance wants to know.
func (in *instance) logWaiting(what string, attributes ...any) {
	in.cfg.Log.Info(what, append([]any{"hub", in.group.Hub, "group", in.group.Group, "instance", in.id}, attributes...)...)
}

// withStack adds to a log's attributes where a panic came from.
func withStack(err error, attributes ...any) []any {
	if p, ok := errors.AsType[*PanicError](err); ok {
		attributes = append(attributes, "stack", string(p.Stack))
	}
	return attributes
}

// hubID distinguishes this hub from an earlier one of its name.
func (in *instance) hubID() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.info.Created.IsZero() {
		return ""
	}
	return in.info.Created.UTC().Format(time.RFC3339Nano)
}

func (in *instance) partitions() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.info.Partitions
}

// learn asks the hub for its partitions.
func (in *instance) learn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StallAfter)
	defer cancel()
	info, err := in.hub.Info(ctx)
	if err != nil {
		return err
	}
	if len(info.Partitions) == 0 {
		return errors.New("the hub names no partitions")
	}
	in.mu.Lock()
	before := in.info
	in.info = info
	in.mu.Unlock()
	if len(before.Partitions) != len(info.Partitions) {
		in.wake()
	}
	if !before.Created.IsZero() && !before.Created.Equal(info.Created) {
		// All partitions start again: their events are others now, though the numbers may be the
		// same.
		in.report("ask for the hub's partitions", errNewHub)
		for _, p := range in.ownPumps() {
			p.control.endGeneration(errNewHub)
		}
	}
	return nil
}

func (in *instance) ownPumps() []*pump {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Collect(maps.Values(in.pumps))
}

// storeContext bounds one call of the store.
func (in *instance) storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(times{in.cfg.Lease, in.cfg.Renew}.in(ctx), in.cfg.storeTimeout())
}
