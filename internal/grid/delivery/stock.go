package delivery

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
)

// stock is what a lane knows of its parked log, where what cannot be sent waits that is not in the
// log, or was tried already. Guarded by lane.mu.
type stock struct {
	// maybe: the parked log may hold something. puts counts what was put there, so that whoever found
	// it empty knows whether that still holds.
	maybe bool
	puts  int
	// peeked is the first of a lane that stands still: what follows is not older.
	peeked *item
	// returning were in the queue and have to go back.
	returning []*item
}

func (s *stock) any() bool { return s.maybe || s.peeked != nil || len(s.returning) > 0 }

// keep takes what was on its way back, or only looked at, into the queue after all.
func (s *stock) keep(l *lane, now time.Time) {
	if s.peeked != nil {
		s.returning = append([]*item{s.peeked}, s.returning...)
		s.peeked = nil
	}
	for _, it := range s.returning {
		l.heldBytes -= it.bytes() // pushLocked counts it again
		l.pushLocked(it, now)
	}
	s.returning = nil
}

// restocked says that something was put on the parked log.
func (l *lane) restocked(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stock.maybe = true
	l.stock.puts++
	l.pokeLocked(now)
}

// shelve puts pending deliveries on the parked log, durably.
func (l *lane) shelve(ctx context.Context, deliveries []pending.Delivery) error {
	if err := l.parked.Put(ctx, deliveries); err != nil {
		return err
	}
	l.restocked(time.Now())
	return nil
}

// putBack puts what has to leave memory on the parked log again.
func (l *lane) putBack(ctx context.Context) error {
	l.mu.Lock()
	items := l.stock.returning
	l.stock.returning = nil
	l.mu.Unlock()
	for len(items) > 0 {
		n := storable(items)
		if err := l.parked.Put(ctx, deliveriesOf(items[:n])); err != nil {
			l.keepReturning(items)
			return err
		}
		for _, it := range items[:n] {
			it.done()
		}
		l.returned(items[:n])
		items = items[n:]
	}
	return nil
}

// keepReturning takes back what could not be put on the parked log. If the subscription has gone
// meanwhile it is nobody's.
func (l *lane) keepReturning(items []*item) {
	l.mu.Lock()
	gone := l.gone
	if gone {
		for _, it := range items {
			l.letGoLocked(it)
		}
	} else {
		l.stock.returning = append(items, l.stock.returning...)
	}
	l.mu.Unlock()
	for _, it := range items {
		if gone {
			it.done()
		}
	}
}

// returned forgets what is on the parked log again.
func (l *lane) returned(items []*item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range items {
		l.letGoLocked(it)
	}
	l.stock.maybe = true
	l.stock.puts++
	l.progress++
}

// drain takes from the parked log what there is room for; of a lane that stands still, what is too
// old, up to the first that is not.
func (l *lane) drain(ctx context.Context) error {
	for size := 1; ; size = min(2*size, choreEvents) {
		events, bytes, puts, ok := l.drainRoom(size)
		if !ok {
			return nil
		}
		entries, err := l.parked.TryTake(ctx, events, bytes)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			l.emptied(puts)
			return nil
		}
		l.unpack(entries)
	}
}

// drainRoom is how much may be taken from the parked log now. A lane that stands still looks at few
// at first: what is not too old has to go back again.
func (l *lane) drainRoom(few int) (events, bytes, puts int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.gone || l.stock.peeked != nil && !l.oldPeekLocked(now) || l.full || !l.stock.maybe {
		return 0, 0, 0, false
	}
	events, bytes = l.terms.queueEvents-l.queue.events, l.terms.queueBytes-l.queue.bytes
	switch l.gateLocked(now) {
	case shut, vacant:
		events = min(few, l.terms.queueEvents-len(l.expired))
	case probe:
		events = l.terms.batchEvents() - l.queue.events
	}
	share := max(int(l.s.budget.free())-l.heldBytes, 0)
	if bytes = min(bytes, share); l.heldBytes == 0 {
		bytes = max(bytes, 1)
	}
	return events, bytes, l.stock.puts, events > 0 && bytes > 0
}

// oldPeekLocked moves the first of the parked log to what is to be put away, once it is too old.
func (l *lane) oldPeekLocked(now time.Time) bool {
	if !l.terms.expired(l.stock.peeked, now) {
		return false
	}
	l.expired = append(l.expired, l.stock.peeked)
	l.stock.peeked = nil
	return true
}

// emptied says that the parked log was found empty, unless something was put there meanwhile.
func (l *lane) emptied(puts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stock.puts == puts {
		l.stock.maybe = false
		l.progress++
	}
}

// unpack puts entries from the parked log where they belong.
func (l *lane) unpack(entries []retrylog.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return // the parked log goes, too
	}
	now := time.Now()
	g := l.gateLocked(now)
	l.progress++
	for _, e := range entries {
		it := itemOf(l.s.budget, e)
		switch {
		case l.terms.expired(it, now):
			l.heldBytes += it.bytes()
			l.expired = append(l.expired, it)
		case g == open || g == probe:
			l.pushLocked(it, now)
		case l.stock.peeked == nil:
			l.heldBytes += it.bytes()
			l.stock.peeked = it
		default:
			l.heldBytes += it.bytes()
			l.stock.returning = append(l.stock.returning, it)
		}
	}
	l.pokeLocked(now)
}
