package broker

import (
	"context"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// steered is an engine whose appends a test holds up and whose answers it changes.
type steered struct {
	eventlog.Engine
	// answer changes what the append of that number, from 1, comes to; nil: it does not.
	answer func(append int, stored eventlog.Appended, err error) (eventlog.Appended, error)
	// refuse keeps the append of that number from being made; nil: none.
	refuse func(append int) error
	// held is what the receipts wait for from that append on; nil: nothing. Set before the
	// engine is used.
	held     chan struct{}
	heldFrom int
	// read is asked before each run that a cursor gives; nil: it is not.
	read func(from eventlog.Sequence) error

	mu      sync.Mutex
	appends int // guarded by mu
	cursors int // guarded by mu
}

func (s *steered) Partition(id eventlog.PartitionID, r eventlog.Retention) (eventlog.Partition, error) {
	p, err := s.Engine.Partition(id, r)
	return steeredPartition{p, s}, err
}

func (s *steered) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursors
}

type steeredPartition struct {
	eventlog.Partition
	s *steered
}

func (p steeredPartition) Submit(ctx context.Context, b eventlog.Batch) (eventlog.Receipt, error) {
	p.s.mu.Lock()
	p.s.appends++
	n := p.s.appends
	p.s.mu.Unlock()
	if p.s.refuse != nil {
		if err := p.s.refuse(n); err != nil {
			return steeredReceipt{failedReceipt{err}, p.s, n}, nil
		}
	}
	receipt, err := p.Partition.Submit(ctx, b)
	return steeredReceipt{receipt, p.s, n}, err
}

func (p steeredPartition) Cursor(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
	p.s.mu.Lock()
	p.s.cursors++
	p.s.mu.Unlock()
	c, err := p.Partition.Cursor(ctx, at)
	return steeredCursor{c, p.s}, err
}

type steeredReceipt struct {
	eventlog.Receipt
	s *steered
	n int
}

func (r steeredReceipt) Wait(ctx context.Context) (eventlog.Appended, error) {
	if r.s.held != nil && r.n >= r.s.heldFrom {
		<-r.s.held
	}
	stored, err := r.Receipt.Wait(ctx)
	if r.s.answer != nil {
		return r.s.answer(r.n, stored, err)
	}
	return stored, err
}

type steeredCursor struct {
	eventlog.Cursor
	s *steered
}

func (c steeredCursor) TryNext(ctx context.Context) (eventlog.Run, error) {
	if c.s.read != nil {
		if err := c.s.read(c.At()); err != nil {
			return eventlog.Run{}, err
		}
	}
	return c.Cursor.TryNext(ctx)
}

// steer opens a broker on an engine that a test steers.
func (y *yard) steer(t *testing.T, s *steered) *Broker {
	t.Helper()
	s.Engine = y.engine
	return open(t, Config{Engine: s, Meta: y.store})
}

// atZero is what a producer says that has stored nothing and begins at 0.
var atZero = new(int32(-1))

func mustBegin(t *testing.T, b *Broker, hub string, cfg ProducerConfig) *Producer {
	t.Helper()
	p, err := b.Producer(t.Context(), hub, "0", cfg)
	testkit.Must(t, err)
	return p
}

func mustSubmit(t *testing.T, p *Producer, first int32, messages ...string) *Pending {
	t.Helper()
	pending, err := p.Submit(t.Context(), first, events(messages...))
	testkit.Must(t, err)
	return pending
}

// mustStore submits and waits.
func mustStore(t *testing.T, p *Producer, first int32, messages ...string) Published {
	t.Helper()
	stored, err := mustSubmit(t, p, first, messages...).Wait(t.Context())
	testkit.Must(t, err)
	return stored
}

// store submits and waits.
func store(ctx context.Context, p *Producer, first int32, messages ...string) (Published, error) {
	pending, err := p.Submit(ctx, first, events(messages...))
	if err != nil {
		return Published{}, err
	}
	return pending.Wait(ctx)
}
