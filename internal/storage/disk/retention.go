package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// wakesPerRound bounds how many partitions that nobody has used yet are opened in a round
// of retention: what they hold has to go too some day, but a start is not to open them all.
const wakesPerRound = 8

// applyRetention is one round over all partitions.
func (e *Engine) applyRetention(ctx context.Context) {
	wakes := wakesPerRound
	for _, p := range e.known() {
		if ctx.Err() != nil {
			return
		}
		if p.asleep() {
			if wakes == 0 || !p.holdsSegments() {
				continue
			}
			wakes--
		}
		p.applyRetention()
	}
}

// holdsSegments reports whether a partition that nobody has used yet has anything to lose.
func (p *partition) holdsSegments() bool {
	files, _, err := listSegments(p.e.fs, p.dir)
	return err == nil && len(files) > 0
}

// asleep reports whether the partition's folder has not been read.
func (p *partition) asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.opened
}

// applyRetention removes the segments that retention or Trim no longer wants.
func (p *partition) applyRetention() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil || p.retain == (eventlog.Retention{}) && p.trim == 0 {
		return
	}
	if err := p.openLocked(); err != nil {
		p.log.Error("retention", "error", err)
		return
	}
	p.takeTokenLocked()
	if p.gone == nil {
		p.mu.Unlock()
		if err := p.removeOld(time.Now()); err != nil {
			p.log.Error("retention", "error", err)
		}
		p.mu.Lock()
	}
	p.releaseTokenLocked()
}

// removeOld removes segments from the oldest on, one by one and each durably, so that
// power loss never leaves a gap. One that cannot be removed holds up those behind it. The
// caller holds the token.
func (p *partition) removeOld(now time.Time) error {
	for {
		if err := p.eraseCondemned(); err != nil {
			return err
		}
		oldest, err := p.surplus(now)
		if err != nil || oldest == nil {
			return err
		}
		if oldest == p.active {
			if err := p.roll(); err != nil {
				return err
			}
		}
		p.mu.Lock()
		p.files = p.files[1:]
		p.mu.Unlock()
		p.condemned = oldest
	}
}

// surplus is the oldest segment, if it is to go.
func (p *partition) surplus(now time.Time) (*file, error) {
	p.mu.Lock()
	oldest, retain, trim, bytes, broken := p.files[0], p.retain, p.trim, p.bytesLocked(), p.broken
	p.mu.Unlock()
	if oldest == p.active && (broken || oldest.tail.Offset == segment.HeaderBytes) {
		return nil, nil
	}
	last, err := p.lastOf(oldest)
	if err != nil {
		return nil, err
	}
	// An active segment that is larger than it may be under a retention that was made
	// smaller goes too: it would otherwise stay until the next append.
	tooMuch := retain.Bytes > 0 && bytes > retain.Bytes && (oldest != p.active || bytes > p.segmentBytes())
	tooOld := retain.Age > 0 && last.LastTime < now.Add(-retain.Age).UnixMilli()
	trimmed := eventlog.Sequence(last.Next) <= trim
	if tooMuch || tooOld || trimmed {
		return oldest, nil
	}
	return nil, nil
}

// lastOf tells where a segment ends. What a damaged one cannot tell, the next one does.
func (p *partition) lastOf(f *file) (segment.Tail, error) {
	p.mu.Lock()
	tail, active := f.tail, f == p.active
	p.mu.Unlock()
	if active {
		return tail, nil
	}
	err := f.acquire()
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		return p.beginningOf(f.stop)
	}
	if err != nil {
		return segment.Tail{}, err
	}
	defer f.release()
	return f.tail, nil
}

// beginningOf is the end of the segment before the one with the given base, as that one's
// header tells it.
func (p *partition) beginningOf(base eventlog.Sequence) (segment.Tail, error) {
	p.mu.Lock()
	next, active := p.fileOfLocked(base), p.active
	p.mu.Unlock()
	if next != active {
		if err := next.acquire(); err != nil {
			return segment.Tail{}, err
		}
		defer next.release()
	}
	return segment.Tail{Next: int64(base), LastTime: next.head.BaseTime}, nil
}

// eraseCondemned takes the segment that was last dropped off the disk, or keeps it for use
// again.
func (p *partition) eraseCondemned() error {
	f := p.condemned
	if f == nil {
		return nil
	}
	unread := f.drop()
	size := p.e.cfg.SegmentBytes
	if unread && f.bytes >= size/2 && f.bytes <= 2*size {
		kept, err := p.e.spares.keep(f.name)
		if err != nil {
			return fmt.Errorf("keep %s: %w", f.name, err)
		}
		if kept {
			p.condemned = nil
			return nil
		}
	}
	if err := p.erase(f.name); err != nil {
		return fmt.Errorf("remove %s: %w", f.name, err)
	}
	p.condemned = nil
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
		p.log.Error("late sync: events since the last one may not survive power loss", "error", err)
	}
}

// syncTo makes a segment durable up to an offset at least, unless it has been removed. If
// it cannot, the segment is not written any more.
func (p *partition) syncTo(f *file, offset int64) error {
	p.mu.Lock()
	durable := f.durable
	p.mu.Unlock()
	if durable >= offset {
		return nil
	}
	err := f.acquire()
	if errors.Is(err, errDropped) {
		return nil
	}
	if err == nil {
		defer f.release()
		p.e.syncs <- struct{}{}
		defer func() { <-p.e.syncs }()
		err = p.sync(f)
	}
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f == p.active {
		p.fenceLocked(err)
	}
	return fmt.Errorf("sync %s: %w", f.name, err)
}
