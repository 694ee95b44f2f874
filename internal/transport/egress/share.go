package egress

import (
	"container/heap"
	"container/list"
	"errors"
	"sync"
	"sync/atomic"
)

// errShort: no connection was to be had. It is no fault of the endpoint.
var errShort = errors.New("no outgoing connection was free: raise the limit of open files")

// What a connection takes of the share. While it is being made it may need two descriptors: a name
// server is asked for both families of addresses, and then one of each is tried.
const (
	dialCost = 2
	connCost = 1
)

// share is what addresses may take of something, all together: descriptors for connections.
//
// To give them to whoever comes first is not enough: one receiver that accepts and never answers
// would have all of them until its requests time out. A fixed part for each address is not enough
// either: there may be one address, or thousands. So an address gets another connection as long
// as it has less than what is free. One that hangs ends up with half, two with a third each, and
// there is always as much left for the next as each of them has. Among those who wait, the address
// that has least comes first.
//
// Round trips are shared out by the same rule: see seat.go.
//
// It is bookkeeping alone, without I/O or goroutines. How room is made for those who wait and have
// less than is fair is the client's to say: see Client.relieve.
type share struct {
	limit int
	cost  int // of what is asked for

	mu      sync.Mutex
	free    int                // guarded by mu
	holders map[string]*holder // by address: those that have something, or wait; guarded by mu
	queue   queue              // of those that wait; guarded by mu
	arrived uint64             // counts waiters; guarded by mu

	// waiting is how many wait, tight whether one of them has less than is fair. They are written
	// with mu held and read without.
	waiting atomic.Int64
	tight   atomic.Bool
}

// holder is an address.
type holder struct {
	address string
	held    int
	waiters list.List // of *waiter, in the order in which they came
	index   int       // in the queue; -1: not there
}

// waiter waits for a connection; granted is closed when it may be made.
type waiter struct {
	granted chan struct{}
	holder  *holder
	element *list.Element // nil once it has been granted
	number  uint64
}

func newShare(limit, cost int) *share {
	limit = max(limit, cost)
	return &share{limit: limit, cost: cost, free: limit, holders: map[string]*holder{}}
}

// take is ask for who gets it at once, or does not wait: nil.
func (s *share) take(address string) *holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[address]
	if h == nil && len(s.queue) == 0 && s.free >= s.cost {
		h = &holder{address: address, index: -1}
		s.holders[address] = h
	}
	if h == nil || len(s.queue) > 0 || !s.fits(h) {
		return nil
	}
	h.held += s.cost
	s.free -= s.cost
	return h
}

// ask asks for what one takes. Its waiter may have been granted already.
func (s *share) ask(address string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.holders[address]
	if h == nil {
		h = &holder{address: address, index: -1}
		s.holders[address] = h
	}
	s.arrived++
	w := &waiter{granted: make(chan struct{}), holder: h, number: s.arrived}
	w.element = h.waiters.PushBack(w)
	s.waiting.Add(1)
	s.settleLocked(h)
	return w
}

// withdraw takes a wish back; not ok: it has been granted.
func (s *share) withdraw(w *waiter) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.element == nil {
		return false
	}
	s.removeLocked(w)
	s.settleLocked(w.holder)
	return true
}

// give returns some of what an address holds.
func (s *share) give(h *holder, cost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.held -= cost
	s.free += cost
	s.settleLocked(h)
}

// open is how much of the share is taken.
func (s *share) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit - s.free
}

func (s *share) removeLocked(w *waiter) {
	w.holder.waiters.Remove(w.element)
	w.element = nil
	s.waiting.Add(-1)
}

// settleLocked grants what can be, after something of a holder has changed.
func (s *share) settleLocked(changed *holder) {
	s.requeueLocked(changed)
	for len(s.queue) > 0 && s.fits(s.queue[0]) {
		h := s.queue[0]
		w := h.first()
		s.removeLocked(w)
		h.held += s.cost
		s.free -= s.cost
		close(w.granted)
		s.requeueLocked(h)
	}
	s.tight.Store(len(s.queue) > 0 && s.queue[0].held < max(2, s.limit/(len(s.holders)+1)))
}

// fits: the address may have one more connection. What holds for the first in the queue holds for
// no other if not for it.
func (s *share) fits(h *holder) bool {
	return s.free >= s.cost && (h.held == 0 || h.held < s.free)
}

// requeueLocked puts a holder to where it belongs in the queue, or out of it.
func (s *share) requeueLocked(h *holder) {
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

func (h *holder) first() *waiter { return h.waiters.Front().Value.(*waiter) }

// queue is a heap of addresses for which somebody waits: who has least comes first, and of those
// who has waited longest.
type queue []*holder

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
	h := x.(*holder)
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
