package logtest

import (
	"context"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Nodes makes several engines of one, each as if it were a process of its own: it is closed apart
// from the others, no partition is one process's alone, and claims fence. It is a double, to test
// what stands on engines whose storage many processes share; RunNodes says what those promise.
//
// A batch with a producer reaches the log when its receipt is waited for, and not before: so a node
// that was halted there finds that its claim is lost.
type Nodes struct {
	engine eventlog.Engine

	mu     sync.Mutex
	claims map[claimID]uint64 // guarded by mu, which is also held while a batch with a producer is stored
}

type claimID struct {
	at       eventlog.PartitionID
	producer int64
}

// NewNodes makes nodes over an engine, which the caller closes when it has closed them.
func NewNodes(engine eventlog.Engine) *Nodes {
	return &Nodes{engine: engine, claims: make(map[claimID]uint64)}
}

// Node gives one more. Its Run runs the engine's background work.
func (n *Nodes) Node() eventlog.Engine {
	ctx, stop := context.WithCancelCause(context.Background())
	return &node{Engine: n.engine, nodes: n, life: ctx, stop: stop}
}

// Open is Node, as what opens an engine for a test.
func (n *Nodes) Open(testing.TB) eventlog.Engine { return n.Node() }

type node struct {
	eventlog.Engine
	nodes *Nodes
	// life ends with Close.
	life context.Context
	stop context.CancelCauseFunc
}

// Close ends this node alone.
func (n *node) Close() error {
	n.stop(eventlog.ErrClosed)
	return nil
}

// within does something unless the node is closed, and for no longer.
func (n *node) within(ctx context.Context, do func(context.Context) error) error {
	if n.life.Err() != nil {
		return eventlog.ErrClosed
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(n.life, func() { stop(eventlog.ErrClosed) })()
	return do(ctx)
}

func (n *node) Provide(ctx context.Context, log string, shape eventlog.Shape) error {
	return n.within(ctx, func(ctx context.Context) error { return n.Engine.Provide(ctx, log, shape) })
}

func (n *node) Remove(ctx context.Context, log string) error {
	return n.within(ctx, func(ctx context.Context) error { return n.Engine.Remove(ctx, log) })
}

func (n *node) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	if n.life.Err() != nil {
		return nil, eventlog.ErrClosed
	}
	p, err := n.Engine.Partition(id)
	if err != nil {
		return nil, err
	}
	return &nodePartition{Partition: p, node: n, id: id}, nil
}

type nodePartition struct {
	eventlog.Partition
	node *node
	id   eventlog.PartitionID
}

func (p *nodePartition) Sole() bool { return false }

func (p *nodePartition) Claim(ctx context.Context, producer int64) (c eventlog.Claim, err error) {
	nodes := p.node.nodes
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	err = p.node.within(ctx, func(ctx context.Context) error {
		b, err := p.Partition.Sealed(ctx)
		if err == nil {
			id := claimID{p.id, producer}
			nodes.claims[id]++
			c = eventlog.Claim{Epoch: nodes.claims[id], Next: b.Next}
		}
		return err
	})
	return c, err
}

func (p *nodePartition) Submit(ctx context.Context, b eventlog.Batch) (r eventlog.Receipt, err error) {
	err = p.node.within(ctx, func(ctx context.Context) error {
		if !b.Producer.Set {
			r, err = p.Partition.Submit(ctx, b)
			return err
		}
		r = &claimReceipt{p: p, batch: cloneBatch(b)}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// SubmitAll is Submit for each where there is a producer, but for what is behind one that was not stored.
func (p *nodePartition) SubmitAll(ctx context.Context, batches []eventlog.Batch) (all []eventlog.Receipt, err error) {
	if _, err := eventlog.CheckAll(batches); err != nil {
		return nil, err
	}
	err = p.node.within(ctx, func(ctx context.Context) error {
		if !batches[0].Producer.Set {
			all, err = p.Partition.SubmitAll(ctx, batches)
			return err
		}
		var before *claimReceipt
		for _, b := range batches {
			before = &claimReceipt{p: p, batch: cloneBatch(b), before: before}
			all = append(all, before)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func cloneBatch(b eventlog.Batch) eventlog.Batch {
	events := make([]eventlog.Event, len(b.Events))
	for i, e := range b.Events {
		events[i] = eventlog.Event{Key: append([]byte(nil), e.Key...), Message: append([]byte(nil), e.Message...)}
	}
	b.Events, b.Raw = events, append([]byte(nil), b.Raw...)
	return b
}

// claimReceipt is that of a batch with a producer.
type claimReceipt struct {
	p     *nodePartition
	batch eventlog.Batch
	// before is that of the batch before it, where they were submitted together.
	before *claimReceipt

	once sync.Once
	done eventlog.Appended // set by once, as err is
	err  error
}

// Start does nothing: Wait does it all, since nobody here stores without waiting.
func (r *claimReceipt) Start() {}

// Wait stores the batch, and those before it first.
func (r *claimReceipt) Wait(ctx context.Context) (eventlog.Appended, error) {
	if r.before != nil {
		if _, err := r.before.Wait(ctx); err != nil {
			return eventlog.Appended{}, eventlog.ErrFenced
		}
	}
	r.once.Do(func() { r.done, r.err = r.store(ctx) })
	return r.done, r.err
}

// store stores the batch, if its claim holds.
func (r *claimReceipt) store(ctx context.Context) (done eventlog.Appended, err error) {
	nodes := r.p.node.nodes
	nodes.mu.Lock()
	defer nodes.mu.Unlock()
	if nodes.claims[claimID{r.p.id, r.batch.Producer.ID}] != r.batch.Claim.Epoch {
		return eventlog.Appended{}, eventlog.ErrFenced
	}
	err = r.p.node.within(ctx, func(ctx context.Context) error {
		done, err = eventlog.Append(ctx, r.p.Partition, r.batch)
		return err
	})
	return done, err
}

func (p *nodePartition) Bounds(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.node.within(ctx, func(ctx context.Context) error { b, err = p.Partition.Bounds(ctx); return err })
	return b, err
}

func (p *nodePartition) Sealed(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.node.within(ctx, func(ctx context.Context) error { b, err = p.Partition.Sealed(ctx); return err })
	return b, err
}

func (p *nodePartition) Trim(ctx context.Context, below eventlog.Sequence) error {
	return p.node.within(ctx, func(ctx context.Context) error { return p.Partition.Trim(ctx, below) })
}

func (p *nodePartition) Cursor(ctx context.Context, at eventlog.Position) (c eventlog.Cursor, err error) {
	err = p.node.within(ctx, func(ctx context.Context) error { c, err = p.Partition.Cursor(ctx, at); return err })
	if err != nil {
		return nil, err
	}
	return &nodeCursor{Cursor: c, node: p.node}, nil
}

type nodeCursor struct {
	eventlog.Cursor
	node *node
}

func (c *nodeCursor) Next(ctx context.Context) (run eventlog.Run, err error) {
	err = c.node.within(ctx, func(ctx context.Context) error { run, err = c.Cursor.Next(ctx); return err })
	return run, err
}

func (c *nodeCursor) TryNext(ctx context.Context) (run eventlog.Run, err error) {
	err = c.node.within(ctx, func(ctx context.Context) error { run, err = c.Cursor.TryNext(ctx); return err })
	return run, err
}

// Await wakes at the node's end, too.
func (c *nodeCursor) Await(wake func()) (stop func()) {
	var once sync.Once
	both := func() { once.Do(wake) }
	ended := context.AfterFunc(c.node.life, both)
	taken := c.Cursor.Await(both)
	return func() { ended(); taken() }
}
