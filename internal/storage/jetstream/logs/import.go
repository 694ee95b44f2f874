package logs

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

var _ eventlog.Importer = (*partition)(nil)

// BeginAt is eventlog.Importer's: a mark that says so, from which everybody folds on.
func (p *partition) BeginAt(ctx context.Context, first eventlog.Sequence, newest time.Time) error {
	if err := p.beginAt(ctx, first, newest); err != nil {
		return fmt.Errorf("begin %s at %d: %w", p.id, first, err)
	}
	return nil
}

func (p *partition) beginAt(ctx context.Context, first eventlog.Sequence, newest time.Time) error {
	b, err := p.Sealed(ctx)
	if err != nil {
		return err
	}
	if err := eventlog.CheckBegin(b, first); err != nil || first == 0 {
		return err
	}
	part := p.part.Load()
	part.s.mu.Lock()
	var messages [][]byte
	if part.s.readyLocked() {
		part.s.partLocked(part.subject)
		messages = part.s.beginLocked(part, first, max(newest.UnixMilli(), 0))
	}
	part.s.mu.Unlock()
	if messages == nil {
		return eventlog.ErrUnavailable
	}
	last, err := part.s.writeMark(ctx, messages)
	if err != nil {
		return part.storageError(ctx, err)
	}
	if err := part.foldedTo(ctx, last); err != nil {
		return err
	}
	if b, err = part.bounds(ctx); err == nil && b.Next != first {
		err = fmt.Errorf("somebody else has appended: its next number is %d", b.Next)
	}
	return err
}

// beginLocked makes a mark that has a partition begin at a number.
func (s *stream) beginLocked(begins *part, first eventlog.Sequence, newest int64) [][]byte {
	return s.marksLocked(time.Now(), func(state *frames.PartitionState) {
		if state.Name == begins.subject {
			state.State = frames.State{Next: first, Time: newest, Head: frames.Head{First: first, Seq: s.line.at}}
		}
	})
}

// Import is eventlog.Importer's. Nobody else writes, so that this process does, for all producers.
func (p *partition) Import(ctx context.Context, run eventlog.Run) (eventlog.Receipt, error) {
	b := eventlog.Batch{Events: run.Events, Producer: run.Producer, Form: run.Form, Raw: run.Raw, Count: run.Count, MaxTime: run.MaxTime}
	if _, err := b.Check(); err != nil {
		return nil, err
	}
	part, err := p.use(ctx)
	if err != nil {
		return nil, err
	}
	err = part.s.until(ctx, func() (bool, error) { return part.pending < maxPending && part.s.readyLocked(), part.ended })
	if err != nil {
		return nil, err
	}
	s := part.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case part.ended != nil:
		return nil, part.ended
	case part.draining:
		return nil, eventlog.ErrClosed
	case part.fold == nil:
		return nil, eventlog.ErrUnavailable
	}
	w := part.ownLocked()
	next, newest := w.expects()
	if err := eventlog.CheckImport(next, newest, run); err != nil {
		return nil, fmt.Errorf("import into %s: %w", p.id, err)
	}
	s.useLocked()
	r := w.submit(encodeBatch(b, run.Time.UnixMilli()), run.Time.UnixMilli(), time.Now())
	w.importNext, w.importTime = run.First+eventlog.Sequence(b.Len()), run.Time
	s.rouse()
	return r, nil
}

// expects is where an import goes on: behind what is on its way, or behind the end.
func (w *writer) expects() (eventlog.Sequence, time.Time) {
	if len(w.receipts) > 0 && w.importNext > 0 {
		return w.importNext, w.importTime
	}
	b := w.p.boundsLocked()
	return b.Next, b.LastTime
}
