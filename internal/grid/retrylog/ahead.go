package retrylog

import (
	"cmp"
	"container/heap"
	"time"
)

// What all retry logs together read ahead, in bytes of memory, those of one shard where the yard has
// several nodes, and the least for each. An entry counts for at least heldBytes, so that this bounds
// their number too.
const (
	aheadBytes        = 8 << 20
	aheadBytesOfShard = 1 << 20
	aheadBytesMin     = 64 << 10
)

// ahead is what a retry log has read and not handed out, the next due on top.
type ahead struct {
	entries entryHeap
	bytes   int
	room    int
	// full is set when there is no more room, and until half of it is free: reading on for each
	// entry that leaves would read each batch many times.
	full bool
}

func (a *ahead) push(h *held) {
	heap.Push(&a.entries, h)
	a.bytes += h.size
	a.full = a.full || a.bytes >= a.room
}

func (a *ahead) pop() *held {
	h := heap.Pop(&a.entries).(*held)
	a.bytes -= h.size
	a.full = a.full && a.bytes > a.room/2
	return h
}

// due is when the next one is; false if there is none.
func (a *ahead) due() (time.Time, bool) {
	if len(a.entries) == 0 {
		return time.Time{}, false
	}
	return a.entries[0].due, true
}

// entryHeap implements heap.Interface: by due time, then as they were put.
type entryHeap []*held

func (e entryHeap) Len() int      { return len(e) }
func (e entryHeap) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entryHeap) Push(h any)   { *e = append(*e, h.(*held)) }

func (e entryHeap) Less(i, j int) bool { return compareHeld(e[i], e[j]) < 0 }

func compareHeld(a, b *held) int {
	return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.number, b.number))
}

func (e *entryHeap) Pop() any {
	last := len(*e) - 1
	h := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return h
}
