package broker

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is a place that brokers can be opened on, also several, also again.
type yard struct {
	fs     *vfs.Mem
	engine eventlog.Engine
	store  *memStore
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{fs: vfs.NewMem(), store: newMemStore()}
	y.start(t)
	return y
}

// start opens an engine on the yard's files.
func (y *yard) start(t *testing.T) {
	t.Helper()
	engine, err := disk.Open(disk.Config{FS: y.fs, SegmentBytes: 16 << 10, Log: quiet()})
	testkit.Must(t, err)
	t.Cleanup(func() { engine.Close() })
	y.engine = engine
}

func (y *yard) open(t *testing.T) *Broker {
	t.Helper()
	return open(t, Config{Engine: y.engine, Meta: y.store})
}

func open(t *testing.T, cfg Config) *Broker {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	b, err := Open(t.Context(), cfg)
	testkit.Must(t, err)
	return b
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func mustCreate(t *testing.T, b *Broker, name string, partitions int) Hub {
	t.Helper()
	h, err := b.CreateHub(t.Context(), HubConfig{Name: name, Partitions: partitions})
	testkit.Must(t, err)
	return h
}

func mustPublish(t *testing.T, b *Broker, hub string, to Target, messages ...string) Published {
	t.Helper()
	p, err := b.Publish(t.Context(), hub, to, events(messages...))
	testkit.Must(t, err)
	return p
}

func events(messages ...string) []eventlog.Event {
	batch := make([]eventlog.Event, len(messages))
	for i, m := range messages {
		batch[i].Message = []byte(m)
	}
	return batch
}

// readAll gives what a hub holds, by partition.
func readAll(t *testing.T, b *Broker, hub string) [][]string {
	t.Helper()
	h, err := b.Hub(hub)
	testkit.Must(t, err)
	all := make([][]string, h.Partitions)
	for i := range all {
		all[i] = read(t, b, hub, DefaultGroup, i, eventlog.Earliest())
	}
	return all
}

// read gives the messages of a partition from a position to the end.
func read(t *testing.T, b *Broker, hub, group string, partition int, at eventlog.Position) []string {
	t.Helper()
	c, err := b.Cursor(t.Context(), hub, group, strconv.Itoa(partition), at)
	testkit.Must(t, err)
	defer c.Close()
	var messages []string
	for {
		run, err := c.TryNext(t.Context())
		testkit.Must(t, err)
		if len(run.Events) == 0 {
			return messages
		}
		for _, e := range run.Events {
			messages = append(messages, string(e.Message))
		}
	}
}

func isNotFound(err error, kind string) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) && missing.Kind == kind
}

// faults decides which step of a course of changes fails. From then on all do, as if
// the process had died there.
type faults struct {
	mu      sync.Mutex
	step    int // the step that fails, counted from 1; 0: none. Guarded by mu.
	taken   int // guarded by mu
	removed []string
	// answerLost: the step is taken, but nobody learns of it.
	answerLost bool
}

var errCrashed = errors.New("the process died here")

// do takes a step or fails.
func (f *faults) do(step func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken++
	if f.step == 0 || f.taken < f.step {
		return step()
	}
	if f.taken == f.step && f.answerLost {
		if err := step(); err != nil {
			return err
		}
	}
	return errCrashed
}

type faultyStore struct {
	meta.Store
	*faults
}

func (s faultyStore) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (rev meta.Revision, err error) {
	err = s.do(func() error {
		rev, err = s.Store.CompareAndSet(ctx, key, expected, value)
		return err
	})
	return rev, err
}

func (s faultyStore) Delete(ctx context.Context, key string, expected meta.Revision) error {
	return s.do(func() error { return s.Store.Delete(ctx, key, expected) })
}

type faultyEngine struct {
	eventlog.Engine
	*faults
}

func (e faultyEngine) Remove(ctx context.Context, log string) error {
	return e.do(func() error {
		e.removed = append(e.removed, log)
		return e.Engine.Remove(ctx, log)
	})
}

// scripted is an engine whose partitions answer appends as told.
type scripted struct {
	eventlog.Engine
	// answer is what the append of that number, from 1, comes to; nil stores it.
	answer func(append int) error

	mu      sync.Mutex
	appends int
}

func (s *scripted) Partition(id eventlog.PartitionID, r eventlog.Retention) (eventlog.Partition, error) {
	p, err := s.Engine.Partition(id, r)
	return scriptedPartition{p, s}, err
}

type scriptedPartition struct {
	eventlog.Partition
	script *scripted
}

func (p scriptedPartition) Submit(ctx context.Context, b eventlog.Batch) (eventlog.Receipt, error) {
	p.script.mu.Lock()
	p.script.appends++
	err := p.script.answer(p.script.appends)
	p.script.mu.Unlock()
	if err != nil {
		return failedReceipt{err}, nil
	}
	return p.Partition.Submit(ctx, b)
}

type failedReceipt struct{ err error }

func (r failedReceipt) Wait(context.Context) (eventlog.Appended, error) {
	return eventlog.Appended{}, r.err
}
