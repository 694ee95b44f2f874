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
// They are shared out by the server that a lane sends to, so that one that never answers leaves others theirs. A
// worker that has done a batch gives its seat up where others wait.
type seats struct {
	share *share.Share
	clock *clock
	alarm alarm // guarded by the clock

	mu sync.Mutex
	// ready are lanes whose seat has come. Guarded by mu, which is taken under the share's lock.
	ready []*lane
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

// crowded reports whether somebody waits for a seat.
func (x *seats) crowded() bool { return x.share.Waiting() > 0 }

// wake is the clock's: seats have come. A lane that has nothing to do any more gives its own back.
func (x *seats) wake(now time.Time) {
	x.mu.Lock()
	lanes := x.ready
	x.ready = nil
	x.mu.Unlock()
	for _, l := range lanes {
		if left := l.sit(now); left != nil {
			x.give(left)
		}
	}
}

// seatLocked gives a seat for a worker, if there is one; if not, the lane waits for it, and is poked then.
func (l *lane) seatLocked() seat {
	x, s := l.s.seats, &l.sending
	if came := s.came; came != nil {
		s.came = nil
		return came
	}
	if s.turn != nil {
		return nil
	}
	server := l.terms.server()
	if at := x.share.Take(server); at != nil {
		return at
	}
	s.turn = x.share.Call(server, func() {
		x.mu.Lock()
		x.ready = append(x.ready, l)
		x.mu.Unlock()
		x.clock.set(&x.alarm, soonest)
	})
	return nil
}

// soonest is a time that has always come. That it is always the same spares the clock.
var soonest = time.Unix(1, 0)

// sit gives the lane the seat that it has waited for, and what it makes no use of back.
func (l *lane) sit(now time.Time) (left seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.sending
	s.came, s.turn = s.turn.Holder(), nil
	l.pokeLocked(now)
	left, s.came = s.came, nil
	return left
}
