// Package share divides something scarce, such as connections or goroutines, among addresses that want it, so that
// one which hangs cannot take it from the others.
package share

import (
	"container/heap"
	"container/list"
	"sync"
	"sync/atomic"
)

// Share is what addresses may take of something, all together.
//
// To give it to whoever comes first is not enough: one receiver that accepts and never answers
// would have all of it until its requests time out. A fixed part for each address is not enough
// either: there may be one address, or thousands. So an address gets another part as long
// as it has less than what is free. One that hangs ends up with half, two with a third each, and
// there is always as much left for the next as each of them has. Among those who wait, the address
// that has least comes first.
//
// It is bookkeeping alone, without I/O or goroutines. All methods may be called by many goroutines at
// once.
type Share struct {
	limit int
	cost  int // of what is asked for

	mu      sync.Mutex
	free    int                // guarded by mu
	holders map[string]*Holder // by address: those that have something, or wait; guarded by mu
	queue   queue              // of those that wait; guarded by mu
	arrived uint64             // counts waiters; guarded by mu

	// waiting is how many wait, tight whether one of them has less than is fair. They are written
	// with mu held and read without.
	waiting atomic.Int64
	tight   atomic.Bool
}

// Holder is an address that has something, or waits for it.
type Holder struct {
	address string
	held    int
	waiters list.List // of *Waiter, in the order in which they came
	index   int       // in the queue; -1: not there
}

// Waiter waits for a part.
type Waiter struct {
	granted chan struct{} // closed when it has its part; nil: come is called
	come    func()
	holder  *Holder
	element *list.Element // nil once it has been granted
	number  uint64
}

// New makes one of so much in all, of which each who asks takes its cost.
func New(limit, cost int) *Share {
	limit = max(limit, cost)
	return &Share{limit: limit, cost: cost, free: limit, holders: map[string]*Holder{}}
}

// Address is whose part it is.
func (h *Holder) Address() string { return h.address }

// Limit is how much there is in all.
func (s *Share) Limit() int { return s.limit }

// Waiting is how many wait.
func (s *Share) Waiting() int { return int(s.waiting.Load()) }

// Tight reports whether one of those who wait has less than is fair. How room is made for it is for those
// who have more to say.
func (s *Share) Tight() bool { return s.tight.Load() }

// Granted is closed when the waiter has its part, where it was made by Ask.
func (w *Waiter) Granted() <-chan struct{} { return w.granted }

// Holder is whose part it is: what is given back is given back for it.
func (w *Waiter) Holder() *Holder { return w.holder }

// Take is Ask for who gets it at once, or does not wait: nil. Nobody is passed over: for those who wait there is not
// enough, so that an address for which there is has less than each of them.
func (s *Share) Take(address string) *Holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[address]
	if h == nil {
		h = &Holder{address: address, index: -1}
	}
	if !s.fits(h) {
		return nil
	}
	s.holders[address] = h
	h.held += s.cost
	s.free -= s.cost
	return h
}

// Ask asks for a part. Its waiter may have been granted it already.
func (s *Share) Ask(address string) *Waiter {
	return s.ask(address, &Waiter{granted: make(chan struct{})})
}

// Call asks for a part, and has come called once it is there, quickly and with the share's lock held; perhaps
// before Call returns.
func (s *Share) Call(address string, come func()) *Waiter {
	return s.ask(address, &Waiter{come: come})
}

func (s *Share) ask(address string, w *Waiter) *Waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[address]
	if h == nil {
		h = &Holder{address: address, index: -1}
		s.holders[address] = h
	}
	s.arrived++
	w.holder, w.number = h, s.arrived
	w.element = h.waiters.PushBack(w)
	s.waiting.Add(1)
	s.settleLocked(h)
	return w
}

// Withdraw takes a wish back; not ok: it has been granted.
func (s *Share) Withdraw(w *Waiter) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.element == nil {
		return false
	}
	s.removeLocked(w)
	s.settleLocked(w.holder)
	return true
}

// Give returns some of what an address holds.
func (s *Share) Give(h *Holder, cost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.held -= cost
	s.free += cost
	s.settleLocked(h)
}

// Wanted reports whether a holder should give up what it could go on using: another of its own address waits for it, or
// an address that has less. Those who have as much and still wait cannot be helped by it. mine is a wish of whoever
// asks, which does not count; nil: there is none.
func (s *Share) Wanted(h *Holder, mine *Waiter) bool {
	if s.waiting.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := h.waiters.Len()
	if mine != nil && mine.element != nil && mine.holder == h {
		own--
	}
	return own > 0 || len(s.queue) > 0 && s.queue[0].held < h.held
}

// Open is how much of the share is taken.
func (s *Share) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit - s.free
}

func (s *Share) removeLocked(w *Waiter) {
	w.holder.waiters.Remove(w.element)
	w.element = nil
	s.waiting.Add(-1)
}

// settleLocked grants what can be, after something of a holder has changed.
func (s *Share) settleLocked(changed *Holder) {
	s.requeueLocked(changed)
	for len(s.queue) > 0 && s.fits(s.queue[0]) {
		h := s.queue[0]
		w := h.first()
		s.removeLocked(w)
		h.held += s.cost
		s.free -= s.cost
		w.grant()
		s.requeueLocked(h)
	}
	s.tight.Store(len(s.queue) > 0 && s.queue[0].held < max(2, s.limit/(len(s.holders)+1)))
}

func (w *Waiter) grant() {
	if w.come != nil {
		w.come()
		return
	}
	close(w.granted)
}

// fits: the address may have one more part. What holds for the first in the queue holds for
// no other if not for it.
func (s *Share) fits(h *Holder) bool {
	return s.free >= s.cost && (h.held == 0 || h.held < s.free)
}

// requeueLocked puts a holder to where it belongs in the queue, or out of it.
func (s *Share) requeueLocked(h *Holder) {
	switch waits := h.waiters.Len() > 0; {
	case waits && h.index < 0:
		heap.Push(&s.queue, h)
	case waits:
		heap.Fix(&s.queue, h.index)
	case h.index >= 0:
		heap.Remove(&s.queue, h.index)
	}
	if h.waiters.Len() == 0 && h.held == 0 {
		delete(s.holders, h.address)
	}
}

func (h *Holder) first() *Waiter { return h.waiters.Front().Value.(*Waiter) }

// queue is a heap of addresses for which somebody waits: who has least comes first, and of those
// who has waited longest.
type queue []*Holder

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].held != q[j].held {
		return q[i].held < q[j].held
	}
	return q[i].first().number < q[j].first().number
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	h := x.(*Holder)
	h.index = len(*q)
	*q = append(*q, h)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	h.index = -1
	return h
}
