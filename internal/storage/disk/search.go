package disk

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// searchOf is how a position is found that is told by a time; nil for others. It answers errDropped
// where what it looked at was removed meanwhile.
func (p *partition) searchOf(at eventlog.Position) func() (eventlog.Sequence, error) {
	if t, ok := at.Time(); ok {
		return func() (eventlog.Sequence, error) { return p.searchTime(roundUp(t)) }
	}
	if t, ok := at.Created(); ok {
		return func() (eventlog.Sequence, error) { return p.searchCreated(roundUp(t)) }
	}
	if at.IsGreatestCreated() {
		return p.searchGreatest
	}
	return nil
}

// roundUp is the first whole millisecond that is not before a time.
func roundUp(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// searchCreated finds the first batch with an event created at that time or later, or the end.
// Create times do not rise from segment to segment, so that each says its greatest: all are asked in
// turn. One that cannot be read is passed by.
func (p *partition) searchCreated(ms int64) (eventlog.Sequence, error) {
	files, next, err := p.present()
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		tail, err := p.lastOf(f)
		if err != nil {
			return 0, err
		}
		if tail.MaxTime < ms {
			continue
		}
		if seq, found, err := p.firstCreated(f, ms); err != nil || found {
			return seq, err
		}
	}
	return next, nil
}

// searchGreatest finds the first batch with the greatest create time of all, or the end where there
// is no event.
func (p *partition) searchGreatest() (eventlog.Sequence, error) {
	files, next, err := p.present()
	if err != nil {
		return 0, err
	}
	greatest := int64(segment.NoTime)
	for _, f := range files {
		tail, err := p.lastOf(f)
		if err != nil {
			return 0, err
		}
		greatest = max(greatest, tail.MaxTime)
	}
	if greatest == segment.NoTime {
		return next, nil
	}
	return p.searchCreated(greatest)
}

// present are the segments there are now, and the number that follows what is in them.
func (p *partition) present() ([]*file, eventlog.Sequence, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.files), p.visible.next, p.gone
}

// firstCreated skims a segment for the first batch with an event created at that time or later.
func (p *partition) firstCreated(f *file, ms int64) (seq eventlog.Sequence, found bool, err error) {
	p.mu.Lock()
	var offset, limit int64
	active := f == p.active
	if active {
		offset, limit = f.index.Created(ms), f.tail.Offset
	}
	p.mu.Unlock()
	if err := f.acquire(); err != nil {
		return 0, false, err
	}
	defer f.release()
	if !active {
		offset, limit = f.lookup().Created(ms), f.tail.Offset
	}
	scan := segment.NewScanner(f, f.head.Salt, offset, limit, nil)
	for {
		info, _, err := scan.Skim(skimBytes)
		switch {
		case err == nil && info.Created() >= ms:
			return eventlog.Sequence(info.First), true, nil
		case err == nil:
		case errors.Is(err, io.EOF):
			return 0, false, nil
		case errors.Is(err, segment.ErrInvalid):
			_, at, err := segment.Resync(f, f.head.Salt, scan.Offset()+1, limit)
			if err != nil {
				return 0, false, nil
			}
			scan.MoveTo(at)
		default:
			return 0, false, fmt.Errorf("read %s: %w", f.name(), err)
		}
	}
}
