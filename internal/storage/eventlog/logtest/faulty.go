package logtest

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// OpKind tells the operations of a Faulty apart.
type OpKind int

// One kind for each method that may fail of partitions, receipts and cursors, and those of engines
// that concern one log. OpNext is each of a cursor's that read.
const (
	OpPartition OpKind = iota
	OpProvide
	OpRemove
	OpSubmit
	OpWait
	OpBounds
	OpSealed
	OpClaim
	OpTrim
	OpCursor
	OpNext
	OpClose
	OpStart
)

// Op is an operation about to be done.
type Op struct {
	Kind OpKind
	ID   eventlog.PartitionID // of OpProvide and OpRemove the log alone
	// N numbers the operations of this kind, beginning with 1; that of an OpStart or OpWait is its OpSubmit's.
	// SubmitAll is one OpSubmit.
	N int
	// At is where the cursor of an OpNext stands.
	At eventlog.Sequence
}

// Faulty is an engine that fails on purpose, in the manner of vfs.Faulty and metatest.Faulty.
type Faulty struct {
	eventlog.Engine
	behind atomic.Int64 // see Behind

	mu     sync.Mutex
	inject func(Op) error // guarded by mu
	counts map[OpKind]int // guarded by mu
}

// NewFaulty wraps an engine; until Inject it changes nothing.
func NewFaulty(inner eventlog.Engine) *Faulty {
	return &Faulty{Engine: inner, counts: make(map[OpKind]int)}
}

// Inject has f called before each operation, in place of an f given earlier; nil ends it. An error
// of f's is returned instead of doing the operation; see also Unheard and Refused. f may block,
// which holds up that operation alone, and is called by many goroutines at once.
func (f *Faulty) Inject(inject func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject = inject
}

// Fail has all operations of some kinds fail with err, in place of what was injected earlier.
func (f *Faulty) Fail(err error, kinds ...OpKind) {
	f.Inject(func(op Op) error {
		for _, kind := range kinds {
			if op.Kind == kind {
				return err
			}
		}
		return nil
	})
}

// Behind makes bounds old by so many events, as those of a node that has not heard of the newest; but
// not sealed ones.
func (f *Faulty) Behind(events int) { f.behind.Store(int64(events)) }

// Count tells how many operations of a kind were begun.
func (f *Faulty) Count(kind OpKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

// Unheard has an operation done, and answered with err where it succeeded: the answer was lost.
func Unheard(err error) error { return &unheard{err} }

type unheard struct{ error }

// Refused has the batch of an OpSubmit not submitted, and lets its receipt end in err.
func Refused(err error) error { return &refused{err} }

type refused struct{ error }

// do does an operation, or what was injected. It numbers op, unless it has a number.
func (f *Faulty) do(op *Op, do func() error) error {
	f.mu.Lock()
	f.counts[op.Kind]++
	op.N = cmp.Or(op.N, f.counts[op.Kind])
	inject := f.inject
	f.mu.Unlock()
	var injected error
	if inject != nil {
		injected = inject(*op)
	}
	lost, isUnheard := errors.AsType[*unheard](injected)
	if injected != nil && !isUnheard {
		return injected
	}
	if err := do(); err != nil || !isUnheard {
		return err
	}
	return lost.error
}

// Provide implements eventlog.Engine.
func (f *Faulty) Provide(ctx context.Context, log string, shape eventlog.Shape) error {
	return f.do(&Op{Kind: OpProvide, ID: eventlog.PartitionID{Log: log}}, func() error { return f.Engine.Provide(ctx, log, shape) })
}

// Partition implements eventlog.Engine.
func (f *Faulty) Partition(id eventlog.PartitionID) (p eventlog.Partition, err error) {
	err = f.do(&Op{Kind: OpPartition, ID: id}, func() error {
		p, err = f.Engine.Partition(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultyPartition{p, f, id}, nil
}

// Remove implements eventlog.Engine.
func (f *Faulty) Remove(ctx context.Context, log string) error {
	return f.do(&Op{Kind: OpRemove, ID: eventlog.PartitionID{Log: log}}, func() error { return f.Engine.Remove(ctx, log) })
}

type faultyPartition struct {
	eventlog.Partition
	f  *Faulty
	id eventlog.PartitionID
}

func (p *faultyPartition) Submit(ctx context.Context, b eventlog.Batch) (r eventlog.Receipt, err error) {
	op := &Op{Kind: OpSubmit, ID: p.id}
	err = p.f.do(op, func() error {
		r, err = p.Partition.Submit(ctx, b)
		return err
	})
	refusal, isRefused := errors.AsType[*refused](err)
	switch {
	case isRefused:
		return &faultyReceipt{Receipt: refusal, p: p, n: op.N}, nil
	case err != nil:
		return nil, err
	}
	return &faultyReceipt{Receipt: r, p: p, n: op.N}, nil
}

// SubmitAll is one operation, an OpSubmit, whose number all its receipts have.
func (p *faultyPartition) SubmitAll(ctx context.Context, batches []eventlog.Batch) (all []eventlog.Receipt, err error) {
	op := &Op{Kind: OpSubmit, ID: p.id}
	err = p.f.do(op, func() error {
		all, err = p.Partition.SubmitAll(ctx, batches)
		return err
	})
	if refusal, ok := errors.AsType[*refused](err); ok {
		all = make([]eventlog.Receipt, len(batches))
		for i := range all {
			all[i] = refusal
		}
	} else if err != nil {
		return nil, err
	}
	for i := range all {
		all[i] = &faultyReceipt{Receipt: all[i], p: p, n: op.N}
	}
	return all, nil
}

// Start implements eventlog.Receipt.
func (r *refused) Start() {}

// Wait implements eventlog.Receipt.
func (r *refused) Wait(context.Context) (eventlog.Appended, error) {
	return eventlog.Appended{}, r.error
}

func (p *faultyPartition) Bounds(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.f.do(&Op{Kind: OpBounds, ID: p.id}, func() error {
		b, err = p.Partition.Bounds(ctx)
		return err
	})
	if behind := p.f.behind.Load(); behind > 0 {
		b.Next = max(b.First, b.Next-eventlog.Sequence(behind))
		b.Form, b.FormKnown = 0, false // that of a newer batch
	}
	return b, err
}

func (p *faultyPartition) Sealed(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.f.do(&Op{Kind: OpSealed, ID: p.id}, func() error {
		b, err = p.Partition.Sealed(ctx)
		return err
	})
	return b, err
}

func (p *faultyPartition) Claim(ctx context.Context, producer int64) (c eventlog.Claim, err error) {
	err = p.f.do(&Op{Kind: OpClaim, ID: p.id}, func() error {
		c, err = p.Partition.Claim(ctx, producer)
		return err
	})
	return c, err
}

func (p *faultyPartition) Trim(ctx context.Context, below eventlog.Sequence) error {
	return p.f.do(&Op{Kind: OpTrim, ID: p.id}, func() error { return p.Partition.Trim(ctx, below) })
}

func (p *faultyPartition) Cursor(ctx context.Context, at eventlog.Position) (c eventlog.Cursor, err error) {
	err = p.f.do(&Op{Kind: OpCursor, ID: p.id}, func() error {
		c, err = p.Partition.Cursor(ctx, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultyCursor{Cursor: c, p: p}, nil
}

type faultyReceipt struct {
	eventlog.Receipt
	p *faultyPartition
	n int // of its OpSubmit
}

// Start cannot fail: with an error nothing is started, and Wait does it.
func (r *faultyReceipt) Start() {
	_ = r.p.f.do(&Op{Kind: OpStart, ID: r.p.id, N: r.n}, func() error {
		r.Receipt.Start()
		return nil
	})
}

func (r *faultyReceipt) Wait(ctx context.Context) (a eventlog.Appended, err error) {
	err = r.p.f.do(&Op{Kind: OpWait, ID: r.p.id, N: r.n}, func() error {
		a, err = r.Receipt.Wait(ctx)
		return err
	})
	return a, err
}

type faultyCursor struct {
	eventlog.Cursor
	p     *faultyPartition
	close sync.Once
}

func (c *faultyCursor) Next(ctx context.Context) (eventlog.Run, error) {
	return c.next(ctx, c.Cursor.Next)
}

func (c *faultyCursor) TryNext(ctx context.Context) (eventlog.Run, error) {
	return c.next(ctx, c.Cursor.TryNext)
}

func (c *faultyCursor) next(ctx context.Context, next func(context.Context) (eventlog.Run, error)) (run eventlog.Run, err error) {
	err = c.p.f.do(&Op{Kind: OpNext, ID: c.p.id, At: c.At()}, func() error {
		run, err = next(ctx)
		return err
	})
	return run, err
}

func (c *faultyCursor) TryNextAll(ctx context.Context, to []eventlog.Run, max int) (runs []eventlog.Run, err error) {
	err = c.p.f.do(&Op{Kind: OpNext, ID: c.p.id, At: c.At()}, func() error {
		runs, err = c.Cursor.TryNextAll(ctx, to, max)
		return err
	})
	if err != nil {
		return to, err
	}
	return runs, nil
}

func (c *faultyCursor) Extents(ctx context.Context, to []eventlog.Extent, max int) (extents []eventlog.Extent, err error) {
	err = c.p.f.do(&Op{Kind: OpNext, ID: c.p.id, At: c.At()}, func() error {
		extents, err = c.Cursor.Extents(ctx, to, max)
		return err
	})
	if err != nil {
		return to, err
	}
	return extents, nil
}

// Close counts once, however often it is called.
func (c *faultyCursor) Close() (err error) {
	c.close.Do(func() { err = c.p.f.do(&Op{Kind: OpClose, ID: c.p.id}, c.Cursor.Close) })
	return err
}
