// Package placement gives each shard of the grid to one node of a yard. It invents nothing: a shard is
// a partition of a hub that has no events and that nobody sees, and the nodes are instances of a
// processor (package processor), which share its partitions by leases, hand them over in good order,
// and find out by observation who has died. A yard on one machine needs none of it.
//
// What there is to do for a shard is parts, such as the delivery of its subscriptions. They begin
// when the node has the lease, under its epoch, and have ended before it is released. A lease that
// was lost ends them at once; whoever has the shard next may have begun by then, which the epoch
// decides (package shards).
package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Part is what runs for a shard while this node holds it. It returns soon after ctx has ended: when
// nothing of the shard is under way here and all is saved, or, where ctx's cause is shards.ErrLost,
// as soon as it can. One that returns earlier has nothing more to do; its error is logged.
type Part func(ctx context.Context, held shards.Held) error

// ErrMoves is the cause of a part's context when the shard is handed over, or the node stops.
var ErrMoves = errors.New("the shard is handed over")

// ErrNobody: no node holds the shard at present.
var ErrNobody = errors.New("no node holds the shard at present")

// Config is what placement works with.
type Config struct {
	// Meta has the leases, for all nodes.
	Meta meta.Store
	// Node names this process among the others, as processor.Config.ID does. Owner gives it.
	Node string
	// Parts are run for each shard. They begin together. Where the shard is handed over they end one
	// after the other, the last first: each may rely on those before it. One that is lost ends them all
	// at once.
	Parts []Part
	// Lease is how long a node that died keeps its shards; zero: 10 s.
	Lease time.Duration
	// Log nil: slog.Default().
	Log *slog.Logger
}

const defaultLease = 10 * time.Second

// How long a shard may take to come to rest: longer than parts need for requests under way and for
// saving.
const (
	handoff = 20 * time.Second
	stop    = 80 * time.Second // a quarter of it is for parts to end
)

// Placement is one node's share of the shards. All methods but Run may be called by many goroutines
// at once.
type Placement struct {
	cfg   Config
	store *groups.Registry
	group processor.Group

	mu   sync.Mutex
	held map[int]shards.Epoch // guarded by mu
}

// New makes one. It does no I/O and starts no goroutine.
func New(cfg Config) (*Placement, error) {
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Meta == nil || cfg.Node == "" {
		return nil, errors.New("place shards: a meta store and the node's name are required")
	}
	store, err := groups.New(groups.Config{Meta: cfg.Meta, Broker: directory{}, Log: cfg.Log})
	if err != nil {
		return nil, fmt.Errorf("place shards: %w", err)
	}
	return &Placement{
		cfg: cfg, store: store, held: make(map[int]shards.Epoch),
		group: processor.Group{Namespace: namespace, Hub: hubName, Group: groupName},
	}, nil
}

// Run takes shards, and runs the parts for each, until ctx ends: then they end, the leases are
// released, and it returns nil. It is called once.
func (p *Placement) Run(ctx context.Context) error {
	instance := processor.New(emptyHub{}, processor.Config{
		Group: groupName, Store: p.store, ID: p.cfg.Node, Lease: p.cfg.Lease, Strategy: processor.Greedy,
		Handoff: handoff, Stop: stop, HandlerTimeout: -1, Log: p.cfg.Log,
		OnError: func(err error) {
			p.cfg.Log.Warn("placing the shards of the grid meets trouble, going on", "error", err)
		},
	})
	err := instance.RunHost(ctx, func(partition string) processor.Worker { return &worker{p: p} })
	if err != nil {
		return fmt.Errorf("place shards: %w", err)
	}
	return nil
}

// Held gives the shards that this node holds. It does no I/O.
func (p *Placement) Held() []shards.Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held []shards.Held
	for shard := range shards.Count {
		if epoch, ok := p.held[shard]; ok {
			held = append(held, shards.Held{Shard: shard, Epoch: epoch})
		}
	}
	return held
}

// Holds reports whether this node holds a shard. It does no I/O. The node may be about to lose the
// shard, or have lost it and not know yet.
func (p *Placement) Holds(shard int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, held := p.held[shard]
	return held
}

// Owner gives the node that holds a shard, by its Config.Node, as far as the store says: it may have
// died, or be about to lose the shard. ErrNobody; else the store's errors.
func (p *Placement) Owner(ctx context.Context, shard int) (string, error) {
	leases, err := p.store.Leases(ctx, p.group)
	if err != nil {
		return "", fmt.Errorf("look for the holder of shard %d: %w", shard, err)
	}
	for _, l := range leases {
		if l.Partition == strconv.Itoa(shard) && l.Owner != "" {
			return l.Owner, nil
		}
	}
	return "", fmt.Errorf("shard %d: %w", shard, ErrNobody)
}

// Shares gives how many shards each node holds, by its Config.Node, as far as the store says: one that
// died is among them until others have taken its shards.
func (p *Placement) Shares(ctx context.Context) (map[string]int, error) {
	leases, err := p.store.Leases(ctx, p.group)
	if err != nil {
		return nil, fmt.Errorf("count the shards of each node: %w", err)
	}
	shares := map[string]int{}
	for _, l := range leases {
		if l.Owner != "" {
			shares[l.Owner]++
		}
	}
	return shares, nil
}

// worker runs the parts of one shard.
type worker struct {
	p    *Placement
	held shards.Held
	// end ends all parts; parts are how each is ended and waited for.
	end   context.CancelCauseFunc
	parts []func()
	// free undoes the tie to the lease.
	free func() bool
}

// Open starts the parts.
func (w *worker) Open(ctx context.Context, part *processor.Partition) error {
	shard, err := strconv.Atoi(part.ID())
	if err != nil || shard >= shards.Count {
		return fmt.Errorf("partition %q is no shard", part.ID())
	}
	w.held = shards.Held{Shard: shard, Epoch: shards.Epoch(part.Epoch())}
	var running context.Context
	running, w.end = context.WithCancelCause(context.WithoutCancel(ctx))
	owned := part.Context()
	w.free = context.AfterFunc(owned, func() { w.end(causeOf(context.Cause(owned))) })
	w.p.note(w.held, true)
	for _, run := range w.p.cfg.Parts {
		w.parts = append(w.parts, w.start(running, run))
	}
	return nil
}

// start runs a part; what it gives ends it, and returns when it has.
func (w *worker) start(ctx context.Context, run Part) (stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx, w.held); err != nil && !errors.Is(err, shards.ErrLost) {
			w.p.cfg.Log.Error("a part of a shard has ended", "shard", w.held.Name(), "error", err)
		}
	}()
	return func() {
		end(ErrMoves)
		<-ended
	}
}

// causeOf is why parts end, in the words of package shards.
func causeOf(err error) error {
	if errors.Is(err, processor.ErrLeaseLost) {
		return shards.ErrLost
	}
	return ErrMoves
}

// ProcessEvents is never called: the hub has no events.
func (w *worker) ProcessEvents(context.Context, *processor.Batch) error { return nil }

// ProcessError logs what the lease's keeping has met.
func (w *worker) ProcessError(_ context.Context, _ *processor.Partition, err error) {
	w.p.cfg.Log.Debug("the lease of a shard", "shard", w.held.Name(), "error", err)
}

// Close ends the parts and waits for them: the lease is released after it.
func (w *worker) Close(_ context.Context, _ *processor.Partition, why processor.Reason) error {
	if why == processor.LeaseLost {
		w.end(shards.ErrLost)
	}
	for _, stop := range slices.Backward(w.parts) {
		stop()
	}
	w.end(ErrMoves)
	w.free()
	w.p.note(w.held, false)
	return nil
}

func (p *Placement) note(held shards.Held, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.held, held.Shard); is {
		p.held[held.Shard] = held.Epoch
	}
}
