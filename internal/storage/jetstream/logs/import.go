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
	return p.part.Load().declare(ctx, first, func(state *frames.State, at frames.StreamSeq) {
		*state = frames.State{Next: first, Time: max(newest.UnixMilli(), 0), Head: frames.Head{First: first, Seq: at}}
	})
}

var _ eventlog.Skipper = (*partition)(nil)

// SkipTo is eventlog.Skipper's: a mark that says so. Who folds through it takes over the number, and who
// has read up to it finds no frame for what is left out.
func (p *partition) SkipTo(ctx context.Context, next eventlog.Sequence) error {
	if err := p.skipTo(ctx, next); err != nil {
		return fmt.Errorf("skip to %d in %s: %w", next, p.id, err)
	}
	return nil
}

func (p *partition) skipTo(ctx context.Context, next eventlog.Sequence) error {
	b, err := p.Sealed(ctx)
	if err != nil {
		return err
	}
	if err := eventlog.CheckSkip(b, next); err != nil {
		return err
	}
	return p.part.Load().declare(ctx, next, func(state *frames.State, _ frames.StreamSeq) { state.Next = next })
}

// declare stores a mark by which the partition goes on at a number that no frame gives it. change makes of
// its state, which is as of a sequence, what the mark says. Nobody else appends.
func (p *part) declare(ctx context.Context, next eventlog.Sequence, change func(*frames.State, frames.StreamSeq)) error {
	if err := p.s.tending.take(ctx); err != nil { // a mark of the same sequence that comes later would hide this one from readers
		return err
	}
	defer p.s.tending.give()
	var messages [][]byte
	p.s.mu.Lock()
	if p.s.readyLocked() && p.pending == 0 {
		p.s.partLocked(p.subject)
		messages = p.s.marksLocked(time.Now(), func(state *frames.PartitionState) {
			if state.Name == p.subject {
				change(&state.State, p.s.line.at)
			}
		})
	}
	p.s.mu.Unlock()
	if messages == nil {
		return eventlog.ErrUnavailable
	}
	last, err := p.s.writeMark(ctx, messages)
	if err != nil {
		return p.storageError(ctx, err)
	}
	if err := p.foldedTo(ctx, last); err != nil {
		return err
	}
	b, err := p.bounds(ctx)
	if err == nil && b.Next != next {
		err = fmt.Errorf("somebody else has appended: its next number is %d", b.Next)
	}
	return err
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
	if err := s.room.check(s.e.cfg.TendInterval); err != nil {
		return nil, fmt.Errorf("import into %s: %w in a stream of streamBytes=%d, and nothing is removed while a yard is restored or copied: "+
			"leave streamBytes out or give more, and copy to a new yard, as streams that are there keep their size", p.id, err, s.room.most)
	}
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
