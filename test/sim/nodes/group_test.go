package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

const leaseTime = 30 * time.Second

// instance is one processor, a process outside the yard.
type instance struct {
	y      *yard
	id     string
	rand   *rand.Rand // guarded by mu
	caller groups.Caller

	dead  context.Context // ends when it is killed
	die   context.CancelFunc
	ended chan struct{} // closed when Run has returned

	mu sync.Mutex
	at *node // guarded by mu
}

// join starts one until ctx ends, or it dies.
func (y *yard) join(ctx context.Context) *instance {
	y.clients++
	id := fmt.Sprint("i", y.clients)
	i := &instance{
		y: y, id: id, rand: luck(y.plan.seed, id), ended: make(chan struct{}),
		caller: groups.Caller{Hash: groups.HashOf("secret of " + id), Lasts: leaseTime},
	}
	i.dead, i.die = context.WithCancel(context.Background())
	cfg := processor.Config{
		Group: workers, Store: store{i}, ID: id, MaxBatch: 20, Lease: leaseTime, Renew: leaseTime / 3,
		Checkpoints: processor.Checkpoints{Auto: true}, Log: testkit.Quiet(), OnError: func(error) {},
	}
	if y.flawedStore != nil {
		cfg.Store = y.flawedStore(i)
	}
	if *verbose {
		cfg.OnError = func(err error) { fmt.Println(since(), id, err) }
	}
	running, stop := context.WithCancel(ctx)
	context.AfterFunc(i.dead, stop)
	go func() {
		defer close(i.ended)
		defer stop()
		if err := processor.New(remote{i}, cfg).Run(running, i.handle); err != nil && running.Err() == nil {
			y.judge.fail("processor %s ended by itself: %v", id, err)
		}
	}()
	return i
}

// node is the one that it is connected to.
func (i *instance) node() *node {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dead.Err() != nil {
		return nil
	}
	if i.at == nil || !i.at.serving.Load() {
		i.at = i.y.node(i.rand)
	}
	return i.at
}

// leaves has it choose another node than the one that failed it.
func (i *instance) leaves(n *node, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if errors.Is(err, errGone) && i.at == n {
		i.at = nil
	}
}

// handle is the handler: it works a little, and seldom fails.
func (i *instance) handle(ctx context.Context, b *processor.Batch) error {
	if len(b.Events) == 0 {
		return nil
	}
	i.mu.Lock()
	takes, fails := between(i.rand, time.Millisecond, 200*time.Millisecond), i.rand.IntN(50) == 0
	i.mu.Unlock()
	i.y.judge.handles(i, b.Partition.ID(), b.Partition.Epoch(), b.Events)
	if !rests(ctx, takes) {
		return context.Cause(ctx)
	}
	if i.dead.Err() != nil || fails {
		return errors.New("the database says no")
	}
	i.y.judge.handled(b.Partition.ID(), b.Events)
	return nil
}

// over makes one call of an instance.
func over[T any](ctx context.Context, i *instance, drop func(T), do func(context.Context, *node) (T, error)) (T, error) {
	n := i.node()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.dead, cancel)()
	if n == nil && !rests(ctx, time.Second) {
		var none T
		return none, context.Cause(ctx)
	}
	v, err := call(ctx, n, func(ctx context.Context) (T, error) { return do(ctx, n) }, drop)
	i.leaves(n, err)
	if i.dead.Err() != nil && err == nil {
		if drop != nil {
			drop(v)
		}
		var none T
		return none, errGone
	}
	return v, err
}

// store is the yard's, as an instance reaches it.
type store struct{ *instance }

var (
	_ processor.Store         = store{}
	_ processor.Watcher       = store{}
	_ processor.PresenceStore = store{}
)

func (s store) KeepsPresence() bool { return true }

func (s store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) ([]processor.Lease, error) { return n.groups.Leases(ctx, g) })
}

func (s store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) ([]processor.Lease, error) {
		return n.groups.ClaimBy(ctx, s.caller, g, leases)
	})
}

func (s store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) ([]processor.Checkpoint, error) {
		return n.groups.Checkpoints(ctx, g)
	})
}

func (s store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) (processor.Checkpoint, error) {
		return n.groups.BeginBy(ctx, s.caller, g, l)
	})
}

func (s store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) (processor.Checkpoint, error) {
		return n.groups.SaveBy(ctx, s.caller, g, l, c)
	})
}

func (s store) Force(context.Context, processor.Group, processor.Checkpoint) (processor.Checkpoint, error) {
	return processor.Checkpoint{}, errors.New("only operators force")
}

func (s store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) ([]processor.Entry, error) { return n.groups.Entries(ctx, g, prefix) })
}

func (s store) Put(ctx context.Context, g processor.Group, e processor.Entry) (processor.Entry, error) {
	return over(ctx, s.instance, nil, func(ctx context.Context, n *node) (processor.Entry, error) {
		return n.groups.PutBy(ctx, s.caller, g, e)
	})
}

func (s store) Remove(ctx context.Context, g processor.Group, e processor.Entry) error {
	_, err := over(ctx, s.instance, nil, func(ctx context.Context, n *node) (struct{}, error) {
		return struct{}{}, n.groups.RemoveBy(ctx, s.caller, g, e)
	})
	return err
}

func (s store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	_, err := over(ctx, s.instance, nil, func(ctx context.Context, n *node) (struct{}, error) {
		return struct{}{}, n.groups.Watch(ctx, g, ready, changed)
	})
	return err
}
