package disk

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

var _ eventlog.Importer = (*partition)(nil)

// BeginAt makes a segment that begins at the number, the first of all; see eventlog.Importer. Its
// name appears in one step, and is all there is to it: after power loss it is there, or nothing is.
func (p *partition) BeginAt(ctx context.Context, first eventlog.Sequence, newest time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.lookLocked(); err != nil {
		return err
	}
	if err := eventlog.CheckBegin(eventlog.Bounds{Next: p.next}, first); err != nil {
		return fmt.Errorf("begin %s: %w", p.id, err)
	}
	if first == 0 {
		return nil
	}
	if p.active != nil { // without an event; a second one behind it would leave a gap
		return fmt.Errorf("begin %s at %d: %w: remove its log, and take another", p.id, first, eventlog.ErrUsed)
	}
	err := p.e.fs.MkdirAll(p.dir)
	if err == nil {
		err = p.begin(segment.Tail{Next: int64(first), LastTime: max(newest.UnixMilli(), 0)})
	}
	if err != nil {
		p.looked = false // the segment may be there all the same
		return fmt.Errorf("begin %s at %d: %w", p.id, first, classify(err))
	}
	p.visible = endOf(p.active.tail)
	p.next, p.lastTime = p.visible.next, p.visible.lastTime
	p.noteLocked()
	return nil
}

// Import gives a batch the number and time that it had; see eventlog.Importer.
func (p *partition) Import(ctx context.Context, run eventlog.Run) (eventlog.Receipt, error) {
	b := eventlog.Batch{Events: run.Events, Producer: run.Producer, Form: run.Form, Raw: run.Raw, Count: run.Count, MaxTime: run.MaxTime}
	size, err := b.Check()
	if err != nil {
		return nil, err
	}
	if err := p.mayHold(b.Form); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.fitsLocked(run); err != nil { // before a segment is made for it
		return nil, err
	}
	if err := p.admitLocked(ctx, size+headroom); err != nil {
		return nil, err
	}
	if err := p.fitsLocked(run); err != nil { // something may have failed meanwhile
		return nil, err
	}
	return p.enqueueAtLocked(b, run.Time.UnixMilli()), nil
}

// fitsLocked: the run goes on where the partition ends, with what is under way.
func (p *partition) fitsLocked(run eventlog.Run) error {
	if err := p.lookLocked(); err != nil {
		return err
	}
	if err := eventlog.CheckImport(p.next, time.UnixMilli(p.lastTime), run); err != nil {
		return fmt.Errorf("import into %s: %w", p.id, err)
	}
	return nil
}

var _ eventlog.Skipper = (*partition)(nil)

// SkipTo begins a segment at the number; see eventlog.Skipper. The one before ends where it ended, so
// that readers find numbers missing between the two, as where a segment was damaged at its end.
func (p *partition) SkipTo(ctx context.Context, next eventlog.Sequence) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.readyToWriteLocked(); err != nil {
		return err
	}
	p.takeTokenLocked()
	defer p.releaseTokenLocked()
	switch {
	case p.gone != nil:
		return p.gone
	case p.next != p.visible.next:
		return fmt.Errorf("skip to %d in %s: imports are under way", next, p.id)
	case next <= p.next || p.next == p.active.base:
		return fmt.Errorf("skip to %d in %s: its segment begins with %d, and the next number is %d", next, p.id, p.active.base, p.next)
	}
	p.mu.Unlock()
	err := p.skip(next)
	p.mu.Lock()
	if err != nil {
		p.fenceLocked(err)
		return fmt.Errorf("skip to %d in %s: %w", next, p.id, classify(err))
	}
	p.next, p.lastTime = p.visible.next, p.visible.lastTime
	p.noteLocked()
	return nil
}

// skip makes the active segment end where it does, and another begin at the number. The caller holds
// the token.
func (s *segments) skip(next eventlog.Sequence) error {
	old := s.active
	if err := s.seal(old); err != nil { // or the next start would look for more in it
		return err
	}
	begun, err := s.createFile(segment.Tail{Next: int64(next), LastTime: old.tail.LastTime}, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.retireActiveLocked(begun)
	old.stop = next
	s.mu.Unlock()
	old.unpin()
	return nil
}
