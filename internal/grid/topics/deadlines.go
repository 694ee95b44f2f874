package topics

import (
	"container/heap"
	"sync"
	"time"
)

// deadlines are the moments at which definitions change by themselves, one of each key at most.
type deadlines struct {
	// sooner hears that there is an earlier one than before.
	sooner chan struct{}

	mu sync.Mutex
	// all has the earliest first. Guarded by mu.
	all deadlineHeap
	// of finds them by their key. Guarded by mu.
	of map[string]*deadline
}

func newDeadlines() *deadlines {
	return &deadlines{sooner: make(chan struct{}, 1), of: make(map[string]*deadline)}
}

type deadline struct {
	at  time.Time
	key string
	// index is where it is in the heap.
	index int
}

// set notes the moment of a key, in place of any other; the zero time is none.
func (d *deadlines) set(key string, at time.Time) {
	if !d.put(key, at) {
		return
	}
	select {
	case d.sooner <- struct{}{}:
	default: // it has yet to hear of another
	}
}

// put tells whether it is the earliest.
func (d *deadlines) put(key string, at time.Time) (earliest bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.of[key]
	switch {
	case at.IsZero() && x == nil:
		return false
	case at.IsZero():
		heap.Remove(&d.all, x.index)
		delete(d.of, key)
		return false
	case x == nil:
		x = &deadline{at: at, key: key}
		d.of[key] = x
		heap.Push(&d.all, x)
	default:
		x.at = at
		heap.Fix(&d.all, x.index)
	}
	return x.index == 0
}

// due gives the keys whose moment has come, and when the next one will; zero: never.
func (d *deadlines) due(now time.Time) (keys []string, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.all) > 0 {
		if next = d.all[0].at; next.After(now) {
			return keys, next
		}
		x := heap.Pop(&d.all).(*deadline)
		delete(d.of, x.key)
		keys = append(keys, x.key)
	}
	return keys, time.Time{}
}

// deadlineHeap is a heap.Interface, the earliest first.
type deadlineHeap []*deadline

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *deadlineHeap) Push(x any) {
	x.(*deadline).index = len(*h)
	*h = append(*h, x.(*deadline))
}

func (h *deadlineHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
