package deadletter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// watched is an engine that counts what is read, and by how many cursors that were not closed.
type watched struct {
	eventlog.Engine
	open, runs atomic.Int64
}

func (w *watched) Partition(id eventlog.PartitionID, r eventlog.Retention) (eventlog.Partition, error) {
	p, err := w.Engine.Partition(id, r)
	return watchedPartition{p, w}, err
}

type watchedPartition struct {
	eventlog.Partition
	w *watched
}

func (p watchedPartition) Cursor(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
	c, err := p.Partition.Cursor(ctx, at)
	if err != nil {
		return nil, err
	}
	p.w.open.Add(1)
	return &watchedCursor{Cursor: c, w: p.w}, nil
}

type watchedCursor struct {
	eventlog.Cursor
	w    *watched
	once sync.Once
}

func (c *watchedCursor) TryNext(ctx context.Context) (eventlog.Run, error) {
	c.w.runs.Add(1)
	return c.Cursor.TryNext(ctx)
}

func (c *watchedCursor) Close() error {
	c.once.Do(func() { c.w.open.Add(-1) })
	return c.Cursor.Close()
}

// blindEngine has logs that cannot be read when told so.
type blindEngine struct {
	eventlog.Engine
	fail atomic.Bool
}

func (e *blindEngine) Partition(id eventlog.PartitionID, r eventlog.Retention) (eventlog.Partition, error) {
	p, err := e.Engine.Partition(id, r)
	return blindPartition{p, e}, err
}

type blindPartition struct {
	eventlog.Partition
	e *blindEngine
}

func (p blindPartition) Cursor(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
	if p.e.fail.Load() {
		return nil, errors.New("input/output error")
	}
	return p.Partition.Cursor(ctx, at)
}
