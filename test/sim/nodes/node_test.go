package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/functions/local"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// errGone is what the clients of a process see when it ends.
var errGone = errors.New("connection reset by peer")

// node is one process of the yard, from its start to its end.
type node struct {
	y    *yard
	name string

	life  context.Context // ends with the process, or when it is told to stop
	end   context.CancelCauseFunc
	ended chan struct{} // closed when nothing of it runs any more
	calls sync.WaitGroup

	conn    *model.Conn
	storage *model.Node

	// The following are written before serving is true, and not changed.
	self   cluster.Node
	engine *logs.Engine
	broker *broker.Broker
	groups *groups.Registry
	hubs   *local.Namespace

	serving atomic.Bool
	killed  atomic.Bool
	hurdle  atomic.Value // what kept it from serving last
}

// start starts a process. It serves when it can.
func (y *yard) start(name string) *node {
	n := &node{y: y, name: name, ended: make(chan struct{}), conn: y.servers.Conn(name), storage: y.servers.Node(name)}
	n.life, n.end = context.WithCancelCause(context.Background())
	go n.run()
	return n
}

// kill ends a process as the kernel does: nothing of it has any effect any more.
func (n *node) kill() {
	n.killed.Store(true)
	n.conn.Close()
	n.storage.Close()
	n.stop()
}

// stop tells a process to end.
func (n *node) stop() {
	n.y.mu.Lock()
	n.serving.Store(false)
	n.y.mu.Unlock()
	n.end(errGone)
}

// run is what the program does: it opens its parts one after the other, and closes them in turn.
func (n *node) run() {
	defer close(n.ended)
	defer n.storage.Close()
	defer n.conn.Close()
	store, err := entries.Over(n.y.connOf(n), entries.Config{Yard: "y", Buckets: 2, Log: n.y.log(n.name)})
	if err != nil {
		n.y.judge.fail("node %s: %v", n.name, err)
		return
	}
	var following sync.WaitGroup
	following.Go(func() { n.expect("follow entries", store.Run(context.Background())) })
	defer following.Wait()
	defer store.Close()
	if n.patiently(store.Load) != nil {
		return
	}
	n.engine = logs.New(logs.Config{Storage: n.y.storageOf(n), Store: store, Log: n.y.log(n.name)})
	defer n.engine.Close()
	nodes, err := cluster.New(cluster.Config{Store: store, Wire: n.y.network, ID: n.name, Log: n.y.log(n.name)})
	if err != nil {
		n.y.judge.fail("node %s: %v", n.name, err)
		return
	}
	n.self = nodes.Self()
	n.y.joins(n)
	if n.patiently(nodes.Join) != nil {
		return
	}
	defer testRun(func(ctx context.Context) { n.expect("stay a node", nodes.Run(ctx)) })()
	if n.patiently(func(ctx context.Context) error { return n.open(ctx, store, nodes) }) != nil {
		return
	}
	defer testRun(func(ctx context.Context) { n.expect("run the broker", n.broker.Run(ctx)) })()
	defer testRun(func(ctx context.Context) { n.expect("run the engine", n.engine.Run(ctx)) })()
	n.serving.Store(true)
	if n.life.Err() != nil {
		n.stop() // it was told to before it served
	}
	<-n.life.Done()
	n.calls.Wait()
}

// testRun runs something until stop is called, which waits for its end.
func testRun(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (n *node) open(ctx context.Context, store meta.Store, nodes *cluster.Nodes) (err error) {
	n.broker, err = broker.Open(ctx, broker.Config{Engine: n.engine, Meta: store, Nodes: nodes, Namespace: "sim", Log: n.y.log(n.name)})
	if err != nil {
		return err
	}
	if _, err := n.broker.EnsureHub(ctx, broker.HubConfig{Name: hubName, Partitions: n.y.plan.partitions}, []string{workers, visitors}); err != nil {
		return err
	}
	n.hubs = local.New(n.broker, n.y.log(n.name))
	n.groups, err = groups.New(groups.Config{Meta: store, Broker: n.broker, Log: n.y.log(n.name)})
	return err
}

// expect: a part that ran has ended without an error, or its process was killed.
func (n *node) expect(what string, err error) {
	if err != nil && !n.killed.Load() {
		n.y.judge.fail("node %s could not %s: %v", n.name, what, err)
	}
}

// patiently does something until it succeeds, or the process ends, as a supervisor does that starts the
// program again and again.
func (n *node) patiently(do func(context.Context) error) error {
	for {
		err := do(n.life)
		if err == nil {
			return nil
		}
		n.hurdle.Store(fmt.Sprintf("%v: %v", since(), err))
		if sleep.For(n.life, time.Second, nil) != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
	}
}

// call asks a node something over a connection: it waits while the node is frozen, and is lost with it.
// What comes after the caller has gone is dropped.
func call[T any](ctx context.Context, n *node, do func(context.Context) (T, error), drop func(T)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	var none T
	if n == nil || !n.begin() {
		return none, errGone
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)()
	answered := make(chan outcome)
	left := make(chan struct{})
	defer close(left)
	go func() {
		defer n.calls.Done()
		n.awaitThaw(asking)
		v, err := do(asking)
		n.awaitThaw(asking)
		select {
		case answered <- outcome{v, err}:
		case <-left:
			if err == nil && drop != nil {
				drop(v)
			}
		}
	}()
	leaves := ctx.Done()
	for silent := time.Duration(0); ; silent += silence / 4 {
		timer := time.NewTimer(silence / 4)
		select {
		case <-leaves:
			timer.Stop()
			leaves = nil // a node that lives answers at once
		case o := <-answered:
			timer.Stop()
			if n.life.Err() != nil {
				if o.err == nil && drop != nil {
					drop(o.v)
				}
				return none, errGone
			}
			return o.v, o.err
		case <-n.life.Done():
			timer.Stop()
			return none, errGone
		case <-timer.C:
		}
		if !n.frozen() {
			silent = 0
		}
		if n.frozen() && (silent >= silence || ctx.Err() != nil) {
			return none, fmt.Errorf("%w: it is silent", errGone)
		}
	}
}

// silence is how long a client waits for a node that says nothing at all.
const silence = 20 * time.Second

// begin counts a call in, unless the node does not serve.
func (n *node) begin() bool {
	n.y.mu.Lock()
	defer n.y.mu.Unlock()
	if !n.serving.Load() {
		return false
	}
	n.calls.Add(1)
	return true
}

// frozen reports whether the process stands still.
func (n *node) frozen() bool { return time.Now().Before(n.y.thawOf(n.name)) }

// awaitThaw waits while the process stands still, or until ctx ends.
func (n *node) awaitThaw(ctx context.Context) {
	for n.frozen() && sleep.For(ctx, time.Until(n.y.thawOf(n.name)), nil) == nil {
	}
}
