package logtest

import (
	"context"
	"errors"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// OpKind tells the operations of a Faulty apart.
type OpKind int

// One kind for each method of partitions, receipts and cursors, and those of engines that concern one log.
// OpNext is both of a cursor's.
const (
	OpPartition OpKind = iota
	OpRemove
	OpSubmit
	OpWait
	OpBounds
	OpTrim
	OpCursor
	OpNext
	OpClose
)

// Op is an operation about to be done.
type Op struct {
	Kind OpKind
	ID   eventlog.PartitionID // of OpRemove the log alone
}

// Faulty is an engine that fails on purpose, in the manner of vfs.Faulty and metatest.Faulty.
type Faulty struct {
	eventlog.Engine

	mu     sync.Mutex
	inject func(Op) error // guarded by mu
	counts map[OpKind]int // guarded by mu
}

// NewFaulty wraps an engine; until Inject it changes nothing.
func NewFaulty(inner eventlog.Engine) *Faulty {
	return &Faulty{Engine: inner, counts: make(map[OpKind]int)}
}

// Inject has f called before each operation, in place of an f given earlier; nil ends it. An error of f's is
// returned instead of doing the operation; one of Unheard's after it was done. f may block, which holds up
// that operation alone, and is called by many goroutines at once.
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

// Count tells how many operations of a kind were begun.
func (f *Faulty) Count(kind OpKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[kind]
}

// Unheard has an operation done, and answered with err where it succeeded: the answer was lost.
func Unheard(err error) error { return &unheard{err} }

type unheard struct{ error }

// do does an operation, or what was injected.
func (f *Faulty) do(op Op, do func() error) error {
	f.mu.Lock()
	f.counts[op.Kind]++
	inject := f.inject
	f.mu.Unlock()
	var injected error
	if inject != nil {
		injected = inject(op)
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

// Partition implements eventlog.Engine.
func (f *Faulty) Partition(id eventlog.PartitionID, r eventlog.Retention) (p eventlog.Partition, err error) {
	err = f.do(Op{OpPartition, id}, func() error {
		p, err = f.Engine.Partition(id, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultyPartition{p, f, id}, nil
}

// Remove implements eventlog.Engine.
func (f *Faulty) Remove(ctx context.Context, log string) error {
	return f.do(Op{OpRemove, eventlog.PartitionID{Log: log}}, func() error { return f.Engine.Remove(ctx, log) })
}

type faultyPartition struct {
	eventlog.Partition
	f  *Faulty
	id eventlog.PartitionID
}

func (p *faultyPartition) Submit(ctx context.Context, b eventlog.Batch) (r eventlog.Receipt, err error) {
	err = p.f.do(Op{OpSubmit, p.id}, func() error {
		r, err = p.Partition.Submit(ctx, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultyReceipt{r, p}, nil
}

func (p *faultyPartition) Bounds(ctx context.Context) (b eventlog.Bounds, err error) {
	err = p.f.do(Op{OpBounds, p.id}, func() error {
		b, err = p.Partition.Bounds(ctx)
		return err
	})
	return b, err
}

func (p *faultyPartition) Trim(ctx context.Context, below eventlog.Sequence) error {
	return p.f.do(Op{OpTrim, p.id}, func() error { return p.Partition.Trim(ctx, below) })
}

func (p *faultyPartition) Cursor(ctx context.Context, at eventlog.Position) (c eventlog.Cursor, err error) {
	err = p.f.do(Op{OpCursor, p.id}, func() error {
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
}

func (r *faultyReceipt) Wait(ctx context.Context) (a eventlog.Appended, err error) {
	err = r.p.f.do(Op{OpWait, r.p.id}, func() error {
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
	err = c.p.f.do(Op{OpNext, c.p.id}, func() error {
		run, err = next(ctx)
		return err
	})
	return run, err
}

// Close counts once, however often it is called.
func (c *faultyCursor) Close() (err error) {
	c.close.Do(func() { err = c.p.f.do(Op{OpClose, c.p.id}, c.Cursor.Close) })
	return err
}
