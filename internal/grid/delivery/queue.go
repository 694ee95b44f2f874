package delivery

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// queue is what a lane has in memory and has not sent: first in, first out; and in ordered mode a
// line for each key, of which only the first is ever ready. It is a plain value, guarded by its
// lane.
type queue struct {
	// ready can be sent now.
	ready fifo
	// lines are those behind one of the same key that is ready, under way or waiting. nil: the
	// lane is not ordered.
	lines map[string]*fifo
	// waiting were sent, failed, and are not sent again before they are Due: ordered mode only. The
	// first is due first.
	waiting []*item
	// events and bytes are of all.
	events, bytes int
}

// order turns ordered mode on or off. The queue is empty.
func (q *queue) order(on bool) {
	q.lines = nil
	if on {
		q.lines = make(map[string]*fifo)
	}
}

func (q *queue) ordered() bool { return q.lines != nil }

// push puts an item behind all others, or all of its key.
func (q *queue) push(it *item, now time.Time) {
	q.events++
	q.bytes += it.bytes()
	if it.lined = q.ordered(); it.lined {
		if line, ok := q.lines[it.key]; ok {
			line.push(it)
			return
		}
		q.lines[it.key] = &fifo{}
	}
	q.admit(it, now)
}

// admit makes an item ready, now or when it is due.
func (q *queue) admit(it *item, now time.Time) {
	if it.Due.After(now) {
		q.await(it)
		return
	}
	q.ready.push(it)
}

// out counts an item that was taken from ready.
func (q *queue) out(it *item) {
	q.events--
	q.bytes -= it.bytes()
}

// back puts an item that was out where it was: before all others. Its line, in ordered mode,
// has been waiting for it.
func (q *queue) back(it *item) {
	q.events++
	q.bytes += it.bytes()
	if r := &q.ready; r.head > 0 {
		r.head--
		r.items[r.head] = it
	} else {
		r.items = slices.Insert(r.items, 0, it)
	}
}

// wait puts an item that was out among those that are sent again when they are due.
func (q *queue) wait(it *item) {
	q.events++
	q.bytes += it.bytes()
	q.await(it)
}

func (q *queue) await(it *item) {
	// Behind those that are due at the same time.
	at, _ := slices.BinarySearchFunc(q.waiting, it, func(x, y *item) int { return cmp.Or(x.Due.Compare(y.Due), -1) })
	q.waiting = slices.Insert(q.waiting, at, it)
}

func (q *queue) ripen(now time.Time) {
	n := 0
	for ; n < len(q.waiting) && !q.waiting[n].Due.After(now); n++ {
		q.ready.push(q.waiting[n])
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
}

// nextDue is when the first of those that wait is due; zero: none waits.
func (q *queue) nextDue() time.Time {
	if len(q.waiting) == 0 {
		return time.Time{}
	}
	return q.waiting[0].Due
}

// held is how many keys wait for an event of theirs that failed, and those that are due first.
func (q *queue) held() (n int, first []HeldKey) {
	if !q.ordered() {
		return 0, nil
	}
	for _, it := range q.waiting[:min(len(q.waiting), maxHeldKeys)] {
		h := HeldKey{Key: strings.ToValidUTF8(it.key[:min(len(it.key), maxKeyShown)], ""), Attempts: it.Attempts, Due: it.Due}
		if line := q.lines[it.key]; line != nil {
			h.Behind = line.len()
		}
		first = append(first, h)
	}
	return len(q.waiting), first
}

// advance lets the next of a key go, once the one that was out is done with.
func (q *queue) advance(it *item, now time.Time) {
	line, ok := q.lines[it.key]
	if !ok || !it.lined {
		return
	}
	if line.len() == 0 {
		delete(q.lines, it.key)
		return
	}
	q.admit(line.pop(), now)
}

// all gives everything that is not out.
func (q *queue) all(yield func(*item) bool) {
	for i := range q.ready.len() {
		if !yield(q.ready.at(i)) {
			return
		}
	}
	for _, it := range q.waiting {
		if !yield(it) {
			return
		}
	}
	for _, line := range q.lines {
		for i := range line.len() {
			if !yield(line.at(i)) {
				return
			}
		}
	}
}

// clear takes everything that is not out. Lines of which one is out stay, empty, so that what is
// read again stands behind it.
func (q *queue) clear() []*item {
	all := make([]*item, 0, q.events)
	for _, line := range q.lines {
		for line.len() > 0 {
			all = append(all, line.pop())
		}
	}
	behind := len(all)
	all = append(all, q.waiting...)
	for q.ready.len() > 0 {
		all = append(all, q.ready.pop())
	}
	for _, it := range all[behind:] {
		if it.lined {
			delete(q.lines, it.key)
		}
	}
	q.waiting, q.events, q.bytes = nil, 0, 0
	return all
}

// fifo is a list whose both ends move.
type fifo struct {
	items []*item
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) at(i int) *item { return f.items[f.head+i] }

func (f *fifo) push(it *item) {
	if f.head > 32 && f.head > len(f.items)/2 {
		f.items = slices.Delete(f.items, 0, f.head)
		f.head = 0
	}
	f.items = append(f.items, it)
}

func (f *fifo) pop() *item {
	it := f.items[f.head]
	f.items[f.head] = nil
	f.head++
	f.rest()
	return it
}

// remove takes out those of the first n that take says.
func (f *fifo) remove(n int, take func(*item) bool) []*item {
	var taken []*item
	kept := f.head
	for i := range n {
		it := f.at(i)
		if take(it) {
			taken = append(taken, it)
			continue
		}
		f.items[kept] = it
		kept++
	}
	// What was kept moves up to the rest, so that the order stays.
	gap := len(taken)
	copy(f.items[f.head+gap:], f.items[f.head:kept])
	clear(f.items[f.head : f.head+gap])
	f.head += gap
	f.rest()
	return taken
}

// rest gives memory back that an idle lane does not need.
func (f *fifo) rest() {
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > 32 {
			f.items = nil
		}
	}
}
