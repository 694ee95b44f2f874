package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// choreEvents is how many are put away at a time.
const choreEvents = 256

// work is a worker: it does one job after another until there is none.
func (l *lane) work(s shift) {
	b := &batch{lane: l, shift: s}
	for b.next() {
		switch b.job {
		case jobSend:
			b.send(b.items)
		case jobExpire:
			for _, it := range b.items {
				if b.held || it.LastOutcome == "" { // it was not even tried
					it.LastOutcome = retry.OnProbation
				}
			}
			b.giveUp(b.items, retry.ReasonAge)
		case jobLapse:
			b.lapse()
		}
	}
}

// next settles what a worker has done and gives it something new, all under one lock.
func (b *batch) next() bool {
	l := b.lane
	now := time.Now()
	l.mu.Lock()
	if b.job == jobNone {
		l.sending.starting--
	} else {
		l.sending.busy--
		b.settleLocked(now)
	}
	b.job = b.nextJobLocked(now)
	if b.job != jobNone {
		l.sending.busy++
	}
	l.pokeLocked(now)
	l.mu.Unlock()
	notifyDone(b.late)
	clear(b.late)
	b.late = b.late[:0]
	return b.job != jobNone
}

// nextJobLocked finds something to do: first what is to be put away, then what is to be sent.
func (b *batch) nextJobLocked(now time.Time) job {
	l, m := b.lane, &b.lane.memory
	b.terms, b.endpoint, b.probe, b.probed, b.held = l.terms, nil, false, false, false
	clear(b.items)
	b.items = b.items[:0]
	if l.gone || b.shift.taking.Err() != nil {
		return jobNone
	}
	g := l.gateLocked(now)
	for m.chores() == 0 && l.sending.allowed(l.terms, g, m.queue.ready.len(), now) {
		if b.pickLocked(now); len(b.items) > 0 {
			b.endpoint, b.probe, b.probed = l.endpoint, g == probe, g == probe
			l.sending.begin(len(b.items), b.probe, now)
			return jobSend
		}
	}
	switch {
	case b.take(&m.expired):
		b.held = g != open
		return jobExpire
	case b.take(&m.lapsed):
		return jobLapse
	}
	return jobNone
}

// lookAhead is how far behind the first event others are looked for that may share its batch.
const lookAhead = 256

// pickLocked takes a batch from the queue: the first that is due, and what may go with it (G2) of
// what is there now: never more than the limit, up to the preferred size, and without waiting
// for anything.
func (b *batch) pickLocked(now time.Time) {
	q := &b.lane.memory.queue
	for q.ready.len() > 0 && len(b.items) == 0 {
		b.addLocked(q.ready.pop(), now)
	}
	most := b.terms.batchEvents()
	if len(b.items) == 0 || most == 1 {
		return
	}
	order, first := b.terms.order, &b.items[0].Delivery
	group, count, size := order.Group(first), 1, order.Size(first)
	full := size >= order.PreferredBytes
	window := min(q.ready.len(), max(most, lookAhead))
	taken := q.ready.remove(window, func(it *item) bool {
		if full || count == most || order.Group(&it.Delivery) != group {
			return false
		}
		n := order.Size(&it.Delivery)
		if full = size+n > order.PreferredBytes; full {
			return false
		}
		count, size = count+1, size+n
		return true
	})
	for _, it := range taken {
		b.addLocked(it, now)
	}
}

// addLocked adds an item that was taken from the queue, if it is to be sent: time to live is
// looked at now, and only now (G6). What a late answer has delivered is done (G5).
func (b *batch) addLocked(it *item, now time.Time) {
	l := b.lane
	l.memory.queue.out(it)
	switch {
	case it.Attempts > 0 && l.s.late.took(keyOf(&it.Delivery)):
		l.counts.delivered++
		l.finishLocked(it, now)
		b.late = append(b.late, it)
	case b.terms.expired(it, now):
		l.memory.expired = append(l.memory.expired, it)
	default:
		b.items = append(b.items, it)
	}
}
