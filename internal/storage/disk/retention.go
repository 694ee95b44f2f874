package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// looksPerRound bounds how many partitions that nobody has used yet are looked at in a round of
// retention: what they hold has to go too some day, but a start is not to look at them all.
const looksPerRound = 128

// applyRetention is one round over all partitions.
func (e *Engine) applyRetention(ctx context.Context) {
	if err := e.spares.restock(); err != nil && !vfs.IsNoSpace(err) {
		e.log.Warn("retention", "error", err)
	}
	if err := e.renewal.try(); err != nil && !vfs.IsNoSpace(err) {
		e.log.Warn("data folder keeps its older format", "error", err)
	}
	looks := looksPerRound
	for _, p := range e.known() {
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		due := p.log.retention() != (eventlog.Retention{}) || p.trim > 0
		looked := p.looked
		p.mu.Unlock()
		if !due || !looked && looks == 0 {
			continue
		}
		if !looked {
			looks--
		}
		p.applyRetention()
	}
}

// applyRetention removes the segments that retention or Trim no longer wants.
func (p *partition) applyRetention() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil || p.log.retention() == (eventlog.Retention{}) && p.trim == 0 {
		return
	}
	if err := p.lookLocked(); err != nil {
		p.logger().Error("retention", "error", err)
		return
	}
	if p.active == nil {
		return // nobody has used it yet, and it has nothing to lose
	}
	p.takeTokenLocked()
	if p.gone == nil {
		p.mu.Unlock()
		if err := p.removeOld(time.Now()); err != nil {
			p.logger().Error("retention", "error", err)
		}
		p.mu.Lock()
	}
	p.releaseTokenLocked()
}

// removeOld removes segments from the oldest on, one by one and each durably, so that
// power loss never leaves a gap. One that cannot be removed holds up those behind it. The
// caller holds the token.
func (s *segments) removeOld(now time.Time) error {
	for {
		if err := s.eraseCondemned(); err != nil {
			return err
		}
		oldest, err := s.surplus(now)
		if err != nil || oldest == nil {
			return err
		}
		if oldest == s.active {
			if err := s.roll(true); err != nil {
				return err
			}
		}
		s.mu.Lock()
		s.files = s.files[1:]
		s.noteLocked()
		s.mu.Unlock()
		s.condemned = oldest
	}
}

// surplus is the oldest segment, if it is to go.
func (s *segments) surplus(now time.Time) (*file, error) {
	s.mu.Lock()
	oldest, retain, trim, bytes, broken := s.files[0], s.log.retention(), s.trim, s.bytesLocked(), s.broken
	s.mu.Unlock()
	if oldest == s.active && (broken || oldest.tail.Offset == segment.HeaderBytes) {
		return nil, nil
	}
	last, err := s.lastOf(oldest)
	if err != nil {
		return nil, err
	}
	// An active segment that is larger than it may be under a retention that was made
	// smaller goes too: it would otherwise stay until the next append.
	tooMuch := retain.Bytes > 0 && bytes > retain.Bytes && (oldest != s.active || bytes > s.segmentBytes())
	tooOld := retain.Age > 0 && last.LastTime < now.Add(-retain.Age).UnixMilli()
	trimmed := eventlog.Sequence(last.Next) <= trim && s.e.holds.Load() == 0
	if tooMuch || tooOld || trimmed {
		return oldest, nil
	}
	return nil, nil
}

// lastOf gives where a segment ends. What a damaged one does not say, the next one does.
func (s *segments) lastOf(f *file) (segment.Tail, error) {
	s.mu.Lock()
	tail, active := f.tail, f == s.active
	s.mu.Unlock()
	if active {
		return tail, nil
	}
	err := f.acquire()
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		return s.beginningOf(f.stop)
	}
	if err != nil {
		return segment.Tail{}, err
	}
	defer f.release()
	return f.tail, nil
}

// beginningOf is the end of the segment before the one with the given base, as that one's
// header has it.
func (s *segments) beginningOf(base eventlog.Sequence) (segment.Tail, error) {
	s.mu.Lock()
	if len(s.files) == 0 { // they were let go meanwhile
		s.mu.Unlock()
		return segment.Tail{}, errDropped
	}
	next, active := s.fileOfLocked(base), s.active
	s.mu.Unlock()
	if next != active {
		if err := next.acquire(); err != nil {
			return segment.Tail{}, err
		}
		defer next.release()
	}
	return segment.Tail{Next: int64(base), LastTime: next.head.BaseTime, MaxTime: segment.NoTime}, nil
}

// eraseCondemned takes the segment that was last dropped off the disk, or keeps it for use again.
func (s *segments) eraseCondemned() error {
	f := s.condemned
	if f == nil {
		return nil
	}
	if unread := f.drop(); unread {
		kept, err := s.e.spares.keep(f, s.id)
		if err != nil {
			return fmt.Errorf("keep %s: %w", f.name(), err)
		}
		if kept {
			s.condemned = nil
			return nil
		}
	}
	if err := s.e.fs.Remove(f.name()); err != nil && !vfs.IsNotExist(err) {
		return fmt.Errorf("remove %s: %w", f.name(), err)
	}
	if err := s.e.fs.SyncDir(s.dir); err != nil {
		return fmt.Errorf("remove %s: %w", f.name(), err)
	}
	s.condemned = nil
	return nil
}

// syncLate is one round of late syncs over all partitions.
func (e *Engine) syncLate(ctx context.Context) {
	for _, p := range e.known() {
		if ctx.Err() != nil {
			return
		}
		p.syncLate()
	}
}

// syncLate syncs what sync mode Interval has left to be synced. Appends go on meanwhile.
func (p *partition) syncLate() {
	p.mu.Lock()
	a, idle := p.active, p.gone != nil || p.active == nil || p.broken
	var reached int64
	if !idle {
		reached = a.tail.Offset
	}
	p.mu.Unlock()
	if idle {
		return
	}
	if err := p.syncTo(a, reached); err != nil {
		p.logger().Error("late sync: events since the last one may not survive power loss", "error", err)
	}
}

// syncTo makes a segment durable up to an offset at least, unless it has been removed. If
// it cannot, the segment is not written any more.
func (s *segments) syncTo(f *file, offset int64) error {
	if f.durable.Load() >= offset || f.dropped.Load() {
		return nil
	}
	s.e.syncs <- struct{}{}
	err := f.sync()
	<-s.e.syncs
	if err == nil || errors.Is(err, errDropped) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == s.active {
		s.fenceLocked(err)
	}
	return fmt.Errorf("sync %s: %w", f.name(), err)
}
