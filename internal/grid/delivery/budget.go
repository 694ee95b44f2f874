package delivery

import (
	"sync"
	"sync/atomic"
	"time"
)

// itemBytes is about what an item takes beside its event.
const itemBytes = 400

// feedEvery is how often at most those are woken who wait for memory.
const feedEvery = 10 * time.Millisecond

// budget bounds the memory of all lanes together. Its share for each is what is still free: a
// lane may hold as much as nobody holds. So one lane alone gets half, n lanes that want all
// they can get have an (n+1)th each, and there is always something left for one that comes
// later; no queue of waiters has to be kept in order for that.
type budget struct {
	total int64
	used  atomic.Int64
	// starving: there are lanes in hungry. called: the clock will wake them.
	starving, called atomic.Bool
	clock            *clock
	alarm            alarm // guarded by the clock

	mu     sync.Mutex
	hungry map[*lane]struct{} // got nothing, and have nothing that will leave; guarded by mu
}

func newBudget(total int, c *clock) *budget {
	b := &budget{total: int64(total), clock: c}
	b.alarm.who = b
	return b
}

func (b *budget) free() int64 { return b.total - b.used.Load() }

// allows reports whether a lane that holds so much may hold n more. One that holds nothing is
// never kept waiting by the size of what it wants.
func (b *budget) allows(held, n int) bool {
	free := b.free()
	if held == 0 {
		return free > 0
	}
	return int64(held+n) <= free
}

func (b *budget) charge(n int) { b.used.Add(int64(n)) }

// release gives memory back. Lanes may hold their locks: the clock's goroutine wakes those who
// wait for it.
func (b *budget) release(n int) {
	b.used.Add(-int64(n))
	if b.starving.Load() && b.free() > 0 {
		b.call()
	}
}

// call has the clock wake them soon. What is given back meanwhile does not put it off.
func (b *budget) call() {
	if b.called.CompareAndSwap(false, true) {
		b.clock.set(&b.alarm, time.Now().Add(feedEvery))
	}
}

// wait notes a lane that is to be woken when something is free.
func (b *budget) wait(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hungry == nil {
		b.hungry = make(map[*lane]struct{})
	}
	b.hungry[l] = struct{}{}
	b.starving.Store(true)
	if b.free() > 0 { // it was given back a moment ago
		b.call()
	}
}

// wake is the clock's.
func (b *budget) wake(now time.Time) {
	b.called.Store(false) // before the look: who comes later calls again
	b.mu.Lock()
	lanes := b.hungry
	b.hungry = nil
	b.starving.Store(false)
	b.mu.Unlock()
	for l := range lanes {
		l.mu.Lock()
		l.memory.full = false
		l.pokeLocked(now)
		l.mu.Unlock()
	}
}

// body is an event's bytes, copied once and shared by the lanes that have it.
type body struct {
	bytes []byte
	refs  atomic.Int32
}

// newBody makes the body of an event; the caller has the first share of it.
func newBody(b *budget, event []byte) *body {
	s := &body{bytes: event}
	s.refs.Store(1)
	b.charge(len(event))
	return s
}

func (s *body) share() *body {
	s.refs.Add(1)
	return s
}

func (s *body) release(b *budget) {
	if s.refs.Add(-1) == 0 {
		b.release(len(s.bytes))
	}
}
