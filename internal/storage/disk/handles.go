package disk

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// handles bounds how many segments are open at once, however many partitions there are: one more is
// opened only when one that has not been used for long was closed. They are closed between
// operations, never during one, and reopened by the next. Places are held for single operations
// only, so that who waits for one waits for a read, a write or a sync to end, and for nothing else.
type handles struct {
	max  int
	open prometheus.Gauge
	// waiting is how many wait for a place. Who ends an operation looks at it without the lock.
	waiting atomic.Int32

	mu   sync.Mutex
	free sync.Cond // over mu; signalled when a place is free or a segment is idle
	// All below is guarded by mu.

	// taken are the places of segments that are open or about to be.
	taken int
	// used are the open segments, roughly by use: the one at the front was used longest ago, unless
	// it was used since it was last looked at.
	used list.List // of *file
}

func newHandles(limit int, open prometheus.Gauge) *handles {
	h := &handles{max: limit, open: open}
	h.free.L = &h.mu
	return h
}

// take gets a place for a segment that is about to be opened, closing others for it.
func (h *handles) take() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	for h.taken >= h.max {
		if f := h.longestUnusedLocked(); f != nil {
			h.mu.Unlock()
			f.giveWay()
			h.mu.Lock()
		} else {
			h.free.Wait()
		}
	}
	h.taken++
	h.open.Set(float64(h.taken))
}

// longestUnusedLocked finds the segment to close; nil if all are in the middle of an operation. It
// is off the list, and in use by the caller.
func (h *handles) longestUnusedLocked() *file {
	for range 2 * h.used.Len() {
		front := h.used.Front()
		f := front.Value.(*file)
		if !f.recent.Swap(false) && f.users.CompareAndSwap(idle, idle+1) {
			h.removeLocked(f)
			return f
		}
		h.used.MoveToBack(front)
	}
	return nil
}

// add puts an open segment on the list. It may be idle, with nobody about to use it.
func (h *handles) add(f *file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.element = h.used.PushBack(f)
	h.free.Broadcast()
}

// give frees the place of a segment, which may be on the list.
func (h *handles) give(f *file) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(f)
	h.taken--
	h.open.Set(float64(h.taken))
	h.free.Broadcast()
}

func (h *handles) removeLocked(f *file) {
	if f.element != nil {
		h.used.Remove(f.element)
		f.element = nil
	}
}

// ended tells those who wait for a place that a segment is idle.
func (h *handles) ended() {
	if h.waiting.Load() > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.free.Broadcast()
	}
}
