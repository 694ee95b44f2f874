package delivery

import (
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// seats are what workers need one of: there are so many, of all lanes together. When an event goes to ten
// thousand endpoints at once, as many goroutines would have nothing to do but wait, each with a stack, and the
// heap would grow to as much again before it is collected. A lane that waits for a seat has nothing but an entry
// in a list.
//
// They are shared out by the server that a lane sends to, so that one that never answers leaves others theirs; all
// that are on probation count as one, so that no number of them can take more than half. A worker that has done a batch
// gives its seat up where it is of use to another.
type seats struct {
	share *share.Share
	clock *clock
	alarm alarm // guarded by the clock

	mu sync.Mutex
	// ready are those whose seat has come. Guarded by mu, which is taken under the share's lock.
	ready []*turn
}

// turn is a lane's that waits for a seat.
type turn struct {
	lane   *lane
	waiter *share.Waiter // guarded by lane.mu
}

func newSeats(n int, c *clock) *seats {
	x := &seats{share: share.New(n, 1), clock: c}
	x.alarm.who = x
	return x
}

// seat is a worker's.
type seat = *share.Holder

// give takes a seat back.
func (x *seats) give(at seat) { x.share.Give(at, 1) }

// wanted reports whether a worker's seat is of use to another than its own lane, which waits for one more perhaps.
func (x *seats) wanted(at seat, mine *turn) bool {
	if mine == nil {
		return x.share.Wanted(at, nil)
	}
	return x.share.Wanted(at, mine.waiter)
}

// wake is the clock's: seats have come. A lane that has nothing to do any more gives its own back.
func (x *seats) wake(now time.Time) {
	x.mu.Lock()
	turns := x.ready
	x.ready = nil
	x.mu.Unlock()
	for _, t := range turns {
		if left := t.lane.sit(t, now); left != nil {
			x.give(left)
		}
	}
}

// onProbation is the address of all that are. No server is called so.
const onProbation = "on probation"

// address is what the lane's workers have seats under.
func (l *lane) address(g gate) string {
	if g == probe {
		return onProbation
	}
	return l.terms.server()
}

// seatLocked gives a seat for a worker, if there is one; if not, the lane waits for it, and is poked then.
func (l *lane) seatLocked(address string) seat {
	x, s := l.s.seats, &l.sending
	if came := s.came; came != nil && came.Address() == address {
		s.came = nil
		return came
	}
	if s.turn != nil {
		return nil
	}
	if at := x.share.Take(address); at != nil {
		return at
	}
	t := &turn{lane: l}
	t.waiter = x.share.Call(address, func() {
		x.mu.Lock()
		x.ready = append(x.ready, t)
		x.mu.Unlock()
		x.clock.set(&x.alarm, soonest)
	})
	s.turn = t
	return nil
}

// soonest is a time that has always come. That it is always the same spares the clock.
var soonest = time.Unix(1, 0)

// sit gives the lane the seat that it has waited for, and what it makes no use of back.
func (l *lane) sit(t *turn, now time.Time) (left seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.sending
	if s.turn != t {
		return nil // it was given back
	}
	s.came, s.turn = t.waiter.Holder(), nil
	l.pokeLocked(now)
	left, s.came = s.came, nil
	return left
}

// waitNoMoreLocked has the lane wait for no seat. One that has come, and that it has not heard of yet, goes back.
func (l *lane) waitNoMoreLocked() {
	t := l.sending.turn
	if t == nil {
		return
	}
	l.sending.turn = nil
	if x := l.s.seats; !x.share.Withdraw(t.waiter) {
		x.give(t.waiter.Holder())
	}
}

// suitsLocked reports whether a worker's seat is one that the lane would get now.
func (l *lane) suitsLocked(at seat, now time.Time) bool {
	return at.Address() == l.address(l.gateLocked(now))
}
