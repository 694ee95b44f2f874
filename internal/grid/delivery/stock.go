package delivery

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
)

// stock is what a lane knows of its parked log, where what cannot be sent waits that is not in the
// log, or was tried already. It is the lane's; guarded by lane.mu.
type stock struct {
	// maybe: the parked log may hold something. puts counts what was put there, so that whoever
	// found it empty knows whether that still holds.
	maybe bool
	puts  int
	// peeked is the first of a lane that stands still: what follows is not older.
	peeked *item
	// returning were in the queue and have to go back.
	returning []*item
}

func (s *stock) any() bool { return s.maybe || s.peeked != nil || len(s.returning) > 0 }

func (s *stock) put() {
	s.maybe = true
	s.puts++
}

// keep takes what was on its way back, or only looked at.
func (s *stock) keep() []*item {
	items := s.returning
	if s.peeked != nil {
		items = append([]*item{s.peeked}, items...)
	}
	s.peeked, s.returning = nil, nil
	return items
}

// restocked says that something was put into the parked log.
func (l *lane) restocked(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stock.put()
	l.pokeLocked(now)
}

// shelve puts pending deliveries into the parked log, durably.
func (l *lane) shelve(ctx context.Context, deliveries []pending.Delivery) error {
	if err := l.parked.Put(ctx, deliveries); err != nil {
		return err
	}
	l.restocked(time.Now())
	return nil
}

// putBack puts what has to leave memory into the parked log again. What could not be put there
// stays, unless the subscription has gone meanwhile: then it is nobody's.
func (f *filling) putBack(ctx context.Context) error {
	l := f.lane
	l.mu.Lock()
	items := l.stock.returning
	l.stock.returning = nil
	l.mu.Unlock()
	for portion, deliveries := range portions(items, (*item).delivery) {
		if err := l.parked.Put(ctx, deliveries); err != nil {
			l.mu.Lock()
			gone := l.gone
			if gone {
				for _, it := range items {
					l.memory.letGo(it)
				}
			} else {
				l.stock.returning = append(items, l.stock.returning...)
			}
			l.mu.Unlock()
			if gone {
				notifyDone(items)
			}
			return err
		}
		notifyDone(portion)
		l.mu.Lock()
		for _, it := range portion {
			l.memory.letGo(it)
		}
		l.stock.put()
		l.mu.Unlock()
		f.did = true
		items = items[len(portion):]
	}
	return nil
}

// drain takes from the parked log what there is room for; of a lane that stands still, what is too
// old, up to the first that is not.
func (f *filling) drain(ctx context.Context) error {
	l := f.lane
	for size := 1; ; size = min(2*size, choreEvents) {
		l.mu.Lock()
		events, bytes := f.roomLocked(size, time.Now())
		puts := l.stock.puts
		l.mu.Unlock()
		if events <= 0 || bytes <= 0 {
			return nil
		}
		entries, err := l.parked.TryTake(ctx, events, bytes)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			f.unpack(entries)
			continue
		}
		l.mu.Lock()
		if l.stock.puts == puts { // nothing was put there meanwhile
			l.stock.maybe = false
			f.did = true
		}
		l.mu.Unlock()
		return nil
	}
}

// roomLocked is how much may be taken from the parked log now. A lane that stands still looks at
// few at first: what is not too old has to go back again.
func (f *filling) roomLocked(few int, now time.Time) (events, bytes int) {
	l, m := f.lane, &f.lane.memory
	if l.gone || l.moved {
		return 0, 0
	}
	if it := l.stock.peeked; it != nil {
		if !l.terms.expired(it, now) {
			return 0, 0
		}
		m.expired = append(m.expired, it)
		l.stock.peeked = nil
	}
	if m.full || !l.stock.maybe {
		return 0, 0
	}
	events, bytes = l.terms.queueEvents-m.queue.events, l.terms.queueBytes-m.queue.bytes
	switch l.gateLocked(now) {
	case shut, vacant:
		events = min(few, l.terms.queueEvents-len(m.expired))
	case probe:
		events = l.terms.batchEvents() - m.queue.events
	}
	share := max(int(m.budget.free())-m.bytes, 0)
	if bytes = min(bytes, share); m.bytes == 0 {
		bytes = max(bytes, 1)
	}
	return events, bytes
}

// unpack puts entries from the parked log where they belong.
func (f *filling) unpack(entries []retrylog.Entry) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone || l.moved {
		return // the parked log goes, too, or the next holder takes them from it
	}
	now := time.Now()
	g := l.gateLocked(now)
	m := &l.memory
	f.did = true
	for _, e := range entries {
		it := itemOf(m.budget, e)
		m.bytes += it.bytes()
		switch {
		case l.terms.expired(it, now):
			m.expired = append(m.expired, it)
		case g == open || g == probe:
			m.enqueue(l.terms, it, now)
		case l.stock.peeked == nil:
			l.stock.peeked = it
		default:
			l.stock.returning = append(l.stock.returning, it)
		}
	}
	l.pokeLocked(now)
}
