package disk

import (
	"context"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// known is a partition's bounds as they are, for who must not wait for segments.mu: that is held
// while a partition is opened or mended. Its own lock is held for moments only.
type known struct {
	mu     sync.Mutex
	bounds eventlog.Bounds // guarded by mu
}

// noteLocked keeps known up to date, wherever the first segment or what is visible has changed.
func (s *segments) noteLocked() {
	b := s.boundsLocked()
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	s.known.bounds = b
}

// boundsLocked are those that there are, Bytes left out.
func (s *segments) boundsLocked() eventlog.Bounds {
	return eventlog.Bounds{
		First: s.firstLocked(), Next: s.visible.next, LastTime: s.lastTimeLocked(), Form: s.visible.form, FormKnown: s.visible.formKnown,
	}
}

// lastTimeLocked is the newest event's.
func (s *segments) lastTimeLocked() time.Time {
	if s.visible.next == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.visible.lastTime).UTC()
}

// Peek gives the bounds that are known; see eventlog.Partition.
func (p *partition) Peek() eventlog.Bounds {
	p.known.mu.Lock()
	defer p.known.mu.Unlock()
	return p.known.bounds
}

// Sealed is Bounds: one process writes these files; see eventlog.Partition.
func (p *partition) Sealed(ctx context.Context) (eventlog.Bounds, error) { return p.Bounds(ctx) }
