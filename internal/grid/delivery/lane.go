package delivery

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// lane is one subscription at work. It has no goroutine of its own: whoever changes something
// pokes it, and it starts those who have something to do.
type lane struct {
	s      *Service
	id     string
	source *source
	parked *retrylog.Parked
	// tracks are its places, by partition of the source.
	tracks []*track
	alarm  alarm // guarded by the clock
	// sub is the definition that terms are made of; Run's goroutine's.
	sub *topics.Subscription

	// mu guards all that follows, and the tracks. endpoint.mu, clock.mu and pumps.mu may be taken
	// under it, feed.mu not.
	mu    sync.Mutex
	terms *terms
	// endpoint is whose health counts; nil where nothing is sent.
	endpoint *endpoint
	limiter  *rate.Limiter // nil: no limit
	// gone: the subscription was deleted.
	gone bool

	queue queue
	// expired are too old, and wait for a worker to put them away; lapsed are likewise what pullers
	// held for too long.
	expired, lapsed []*item
	// heldBytes is what all of it measures: queued, expired, under way, held, on the way back.
	heldBytes int
	// full: something did not fit. Until something leaves there is no use in reading on.
	full bool

	// starting workers have not yet looked, busy ones do something.
	starting, busy int
	inFlight       int  // events that are being sent
	probeSent      bool // the one request that probation allows is under way

	stock stock
	pull  pullers

	// pumping: the lane is in the hands of the pumps, or waits for them. pumpAfter is when they
	// may try again after a failure, swept when a lane that stands still was last looked through.
	// progress counts what they have done, so that one who could do nothing is not asked again at
	// once.
	pumping          bool
	pumpAfter, swept time.Time
	progress         int

	// wakeAt is what the alarm is set to; zero: it is not.
	wakeAt   time.Time
	counts   counts
	attempts attempts
}

// sweepEvery is how often at most a lane that stands still is looked through for what has
// become too old.
const sweepEvery = 2 * time.Second

// wake is the clock's.
func (l *lane) wake(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeAt = time.Time{}
	l.pokeLocked(now)
}

// setAlarmLocked has the lane woken. The clock is everybody's, and is not troubled for nothing.
func (l *lane) setAlarmLocked(at time.Time) {
	if !at.Equal(l.wakeAt) {
		l.wakeAt = at
		l.s.clock.set(&l.alarm, at)
	}
}

// poke has the lane see what there is to do.
func (l *lane) poke(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pokeLocked(now)
}

// refill pokes a lane for which there was no room.
func (l *lane) refill(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = false
	l.pokeLocked(now)
}

func (l *lane) pokeLocked(now time.Time) {
	if l.gone {
		return
	}
	l.lapseLocked(now)
	l.queue.ripen(now)
	g := l.gateLocked(now)
	switch {
	case g == shut:
		l.shedLocked()
		l.unclaimLocked(now)
	case g == vacant && l.mayProbeLocked(now) && l.endpoint.claim(l, now):
		g = probe
	}
	l.pumpLocked(g, now)
	l.spawnLocked(g, now)
	if g == probe && !l.probeSent && l.queue.ready.len() == 0 && !l.pumping {
		l.endpoint.release(l, now) // there is nothing to send after all
	}
	l.pull.notify(l.receivableLocked())
	l.setAlarmLocked(l.alarmLocked(g, now))
}

// gate says whether a lane may send.
type gate int

const (
	shut   gate = iota
	vacant      // one request may go out, and nobody has taken it on
	probe       // this lane has: see endpoint
	open
)

func (l *lane) gateLocked(now time.Time) gate {
	switch {
	case l.terms.hold != "":
		return shut
	case l.terms.pull:
		return l.pull.gate(now)
	}
	return l.endpoint.gate(l, now)
}

// mayProbeLocked tells whether there is something to be sent, or may be once the lane is pumped.
func (l *lane) mayProbeLocked(now time.Time) bool {
	return l.queue.ready.len() > 0 || l.pumping || !now.Before(l.pumpAfter) && l.pumpWantedLocked(probe, now)
}

// unclaimLocked gives a probe back that a lane has taken on and can not make, because it was held
// meanwhile.
func (l *lane) unclaimLocked(now time.Time) {
	if l.endpoint != nil && !l.probeSent && !l.endpoint.well.Load() {
		l.endpoint.release(l, now)
	}
}

// behindLocked tells whether there is something to be read in the log.
func (l *lane) behindLocked(now time.Time) bool {
	if l.terms.filter == nil {
		return false
	}
	for _, t := range l.tracks {
		if !t.joined.Load() && !now.Before(t.after) {
			return true
		}
	}
	return false
}

// offer gives the lane an event that it matches, from the feed it has joined. It is taken, or
// the track stands still before it. Whether the lane has to be poked is told.
func (l *lane) offer(t *track, a *arrival) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.joined.Load() || l.gone || a.n < t.mark.Next() || !l.terms.takes(a.time) {
		return false
	}
	if !l.admitsLocked(len(a.raw)) {
		t.detach(a.n, a.time)
		return true
	}
	t.mark.Begin(a.n)
	l.counts.matched++
	l.pushLocked(a.item(l, t), a.time)
	return true
}

// admitsLocked tells whether an event of a size may be taken into the queue now.
func (l *lane) admitsLocked(size int) bool {
	now := time.Time{}
	g := open
	if l.terms.hold != "" || l.terms.pull || !l.endpoint.well.Load() {
		now = time.Now()
		g = l.gateLocked(now)
	}
	switch g {
	case open:
	case vacant:
		if !l.endpoint.claim(l, now) {
			return false
		}
	case probe:
		if l.probeSent || l.queue.events >= l.terms.batchEvents() {
			return false
		}
	default:
		return false
	}
	return l.roomLocked(size)
}

// roomLocked tells whether an event of a size fits into memory.
func (l *lane) roomLocked(size int) bool {
	q, size := &l.queue, size+itemBytes
	fits := q.events == 0 || q.events < l.terms.queueEvents && q.bytes+size <= l.terms.queueBytes
	if fits && l.s.budget.allows(l.heldBytes, size) {
		return true
	}
	l.fullLocked()
	return false
}

// fullLocked notes that something did not fit. A lane of which nothing will leave by itself waits
// for what others give back.
func (l *lane) fullLocked() {
	l.full = true
	if l.queue.events+len(l.expired)+len(l.lapsed)+l.starting+l.busy == 0 {
		l.s.budget.wait(l)
	}
}

// pushLocked takes an item into the queue. One from the log that was not tried yet is due
// whatever the time.
func (l *lane) pushLocked(it *item, now time.Time) {
	if l.queue.ordered() {
		it.key = l.terms.order.OrderKey(&it.Delivery)
	}
	l.heldBytes += it.bytes()
	l.queue.push(it, now)
}

// letGoLocked forgets an item that has left the queue.
func (l *lane) letGoLocked(it *item) {
	l.heldBytes -= it.bytes()
	l.full = false
	it.free(l.s.budget)
}

// finishLocked is the end of an item: its fate is durable, or it was delivered. An entry was
// told so before, without the lock.
func (l *lane) finishLocked(it *item, now time.Time) {
	if it.track != nil {
		it.track.mark.Finish(it.Sequence)
		it.track.feed.note()
	}
	l.queue.advance(it, now)
	l.letGoLocked(it)
}

// shedLocked gives up what is in memory and cannot be sent: what came from the log can be read
// again, what came from a parked log or retry log goes back to the parked log.
func (l *lane) shedLocked() {
	if l.queue.events == 0 {
		return
	}
	byTrack := make(map[*track][]*item, len(l.tracks))
	for _, it := range l.queue.clear() {
		if it.track == nil {
			l.stock.returning = append(l.stock.returning, it)
			continue
		}
		byTrack[it.track] = append(byTrack[it.track], it)
		l.letGoLocked(it)
	}
	for t, items := range byTrack {
		t.putDown(items)
	}
}
