package delivery

import (
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
)

type job int

const (
	jobNone job = iota
	jobSend
	jobExpire
	jobLapse
)

// batch is what a worker has in hand, and what has come of it. It is the worker's alone; what
// concerns the lane is given to it by settleLocked.
type batch struct {
	lane  *lane
	shift shift
	seat  seat
	job   job
	// terms are those that held when the batch was taken.
	terms    *terms
	endpoint *endpoint
	// probe: this is the one request that probation allows; probed: it was. held: the lane stands
	// still.
	probe, probed, held bool
	items               []*item
	deliveries          []*pending.Delivery // what of it is being sent
	// late are finished, but the entries among them are not reported as done yet: that is done
	// without the lane's lock.
	late []*item

	// finished are done with; back were not sent after all; again are sent again when they are
	// due, in ordered mode.
	finished, back, again []*item
	tally                 tally
}

// take moves up to choreEvents from a list.
func (b *batch) take(from *[]*item) bool {
	n := min(len(*from), choreEvents)
	b.items = append(b.items, (*from)[:n]...)
	if *from = (*from)[n:]; len(*from) == 0 {
		*from = nil
	}
	return n > 0
}

// finish is the end of items whose fate is durable. Entries of parked logs and retry logs hear of
// it at once, the lane with settleLocked.
func (b *batch) finish(items ...*item) {
	notifyDone(items)
	b.finished = append(b.finished, items...)
}

// settleLocked gives the lane what has come of the batch.
func (b *batch) settleLocked(now time.Time) {
	l := b.lane
	if b.job == jobSend {
		l.sending.inFlight -= len(b.items)
		if b.probed && b.endpoint == l.endpoint {
			l.sending.probeSent = false
		}
	}
	if l.gone { // nobody wants to hear of them again
		b.late = append(append(b.late, b.back...), b.again...)
		b.finished = append(b.finished, b.late...)
		b.back, b.again = nil, nil
	}
	for _, it := range b.finished {
		l.finishLocked(it, now)
	}
	for i := len(b.back) - 1; i >= 0; i-- {
		l.memory.queue.back(b.back[i])
	}
	for _, it := range b.again {
		l.memory.queue.wait(it)
	}
	for _, list := range []*[]*item{&b.finished, &b.back, &b.again} {
		clear(*list)
		*list = (*list)[:0]
	}
	l.counts.add(&b.tally)
	for _, r := range b.tally.attempts {
		l.attempts.add(r, l.s.mostAttempts())
	}
	for _, d := range b.tally.drops {
		l.drops.add(d)
	}
	clear(b.tally.attempts)
	b.tally = tally{attempts: b.tally.attempts[:0], named: b.tally.named[:0]}
}

// choreEvents is how many are put away at a time.
const choreEvents = 256

// work is a worker: it does one job after another until there is none, or its seat is for others.
func (l *lane) work(s shift, at seat) {
	defer l.s.seats.give(at)
	b := &batch{lane: l, shift: s, seat: at}
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
	wanted := false
	if b.job == jobNone {
		l.sending.starting--
	} else {
		l.sending.busy--
		b.settleLocked(now)
		wanted = l.s.seats.wanted(b.seat, l.sending.turn)
	}
	if b.job = jobNone; !wanted && l.suitsLocked(b.seat, now) {
		b.job = b.nextJobLocked(now)
	}
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
