package disk

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// provided is what Provide has said of a log. It is kept in memory only: files need none of it, and
// who uses a log provides it at each start. The partitions of a log share one, so that a change is
// one step however many there are.
type provided struct {
	partitions int           // guarded by Engine.mu: how many there are; 0: nobody has said
	kind       eventlog.Kind // guarded by Engine.mu: that of the first call
	// retain is nil where nobody has said: then nothing is removed.
	retain atomic.Pointer[eventlog.Retention]
}

// retention is the log's, as of now.
func (l *provided) retention() eventlog.Retention {
	if r := l.retain.Load(); r != nil {
		return *r
	}
	return eventlog.Retention{}
}

// Provide says what a log is; see eventlog.Engine. It does no I/O.
func (e *Engine) Provide(ctx context.Context, log string, shape eventlog.Shape) error {
	err := checkID(eventlog.PartitionID{Log: log})
	if err == nil {
		err = shape.Check()
	}
	if err != nil {
		return fmt.Errorf("provide log %s: %w", log, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usableLocked(log); err != nil {
		return err
	}
	l := e.logLocked(log)
	if l.partitions == 0 {
		l.kind = shape.Kind
	}
	l.partitions = max(l.partitions, shape.Partitions)
	l.retain.Store(&shape.Retention)
	return nil
}

// Partition gives a partition's handle; see eventlog.Engine.
func (e *Engine) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usableLocked(id.Log); err != nil {
		return nil, err
	}
	if p := e.partitions[id]; p != nil {
		return p, nil
	}
	log := e.logLocked(id.Log)
	if log.partitions > 0 && id.Number >= log.partitions {
		return nil, fmt.Errorf("partition %s: the log has %d", id, log.partitions)
	}
	p := &partition{segments: segments{e: e, id: id, log: log, dir: partitionDir(id)}}
	p.p = p
	p.idle.L = &p.mu
	e.partitions[id] = p
	return p, nil
}

// usableLocked: the log can be used.
func (e *Engine) usableLocked(log string) error {
	if e.closed {
		return eventlog.ErrClosed
	}
	if e.removed[log] {
		return eventlog.ErrRemoved
	}
	return nil
}

// logLocked gives what is known of a log, which is nothing at first.
func (e *Engine) logLocked(log string) *provided {
	l := e.logs[log]
	if l == nil {
		l = new(provided)
		e.logs[log] = l
	}
	return l
}
