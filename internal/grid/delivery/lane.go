package delivery

import (
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retrylog"
)

// lane is one subscription at work. It has no goroutine of its own: whoever changes something
// pokes it, and it starts those who have something to do.
type lane struct {
	s       *Service
	holding *holding
	id      string
	source  *source
	parked  *retrylog.Parked
	// tracks are where it stands, by partition of the source.
	tracks []*track
	alarm  alarm // guarded by the clock

	// mu guards all that follows, and the tracks. endpoint.mu, clock.mu and pumps.mu may be taken
	// under it, feed.mu not. Each piece is a plain value, which knows nothing of the others.
	mu sync.Mutex
	// terms are what it goes by, endpoint is whose health counts, nil where nothing is sent. They
	// are changed by Run's goroutine only, which reads them without mu.
	terms    *terms
	endpoint *endpoint
	// gone: the subscription was deleted. moved: another node delivers it, or will: nothing more is
	// taken here, and what is in memory is not done.
	gone     bool
	moved    bool
	memory   memory
	sending  sending
	stock    stock
	pull     pullers
	pumping  pumping
	counts   counts
	attempts attempts
	drops    drops
	began    time.Time // when it was made; not changed
	wakeAt   time.Time // what the alarm is set to; zero: it is not
}

// wake is the clock's.
func (l *lane) wake(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeAt = time.Time{}
	l.pokeLocked(now)
}

// poke has the lane see what there is to do.
func (l *lane) poke(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pokeLocked(now)
}

// pokeLocked sees what there is to do: it brings the lane's memory up to date, has itself pumped
// if it could send more, starts workers if it has something for them, wakes receivers if it has
// something for those, and sets the alarm for what only time will change.
func (l *lane) pokeLocked(now time.Time) {
	if l.gone || l.moved {
		return
	}
	m, ready := &l.memory, &l.memory.queue.ready
	m.lapsed = append(m.lapsed, l.pull.lapse(now)...)
	m.queue.ripen(now)

	g := l.gateLocked(now)
	switch {
	case g == shut:
		l.shedLocked()
		if e := l.endpoint; e != nil && !l.sending.probeSent && !e.well.Load() {
			e.release(l, now) // it cannot make the probe that it may have taken on before it was held
		}
	case g == vacant:
		// There has to be something to send, or it may turn up once the lane is pumped.
		may := ready.len() > 0 || l.pumping.active || l.pumping.allowed(now) && l.pumpWantedLocked(probe, now)
		if may && l.endpoint.claim(l, now) {
			g = probe
		}
	}

	if g == open || g == probe {
		for _, it := range l.stock.keep() {
			m.enqueue(l.terms, it, now)
		}
	}
	if l.pumping.allowed(now) && l.pumpWantedLocked(g, now) {
		l.pumping.active = l.holding.pumps.add(l)
	}

	// As many workers as there are batches, up to the lane's concurrency, as far as there are seats.
	// Each takes the next batch by itself when it is done with one, and ends when there is none, or
	// where others wait for its seat.
	want, address := l.sending.workers(l.terms, g, ready.len(), m.chores(), now), l.address(g)
	if t := l.sending.turn; t != nil && (l.sending.starting >= want || t.waiter.Holder().Address() != address) {
		l.waitNoMoreLocked()
	}
	for l.sending.starting < want {
		at := l.seatLocked(address)
		if at == nil {
			break
		}
		if !l.holding.crew.start(func(s shift) { l.work(s, at) }) {
			l.s.seats.give(at)
			break
		}
		l.sending.starting++
	}
	if g == probe && !l.sending.probeSent && ready.len() == 0 && !l.pumping.active {
		l.endpoint.release(l, now) // there is nothing to send after all
	}
	l.pull.notify(l.receivableLocked())
	l.setAlarmLocked(l.alarmLocked(g, now))
}

// setAlarmLocked has the lane woken. The clock is everybody's, and is not troubled for nothing.
func (l *lane) setAlarmLocked(at time.Time) {
	if !at.Equal(l.wakeAt) {
		l.wakeAt = at
		l.s.clock.set(&l.alarm, at)
	}
}

// alarmLocked is when the lane has to be looked at again though nothing happens to it.
func (l *lane) alarmLocked(g gate, now time.Time) time.Time {
	at := earlier(l.memory.queue.nextDue(), l.pull.nextLapse)
	for _, t := range l.tracks {
		if !t.joined.Load() && now.Before(t.after) {
			at = earlier(at, t.after)
		}
	}
	switch {
	case l.pumping.active:
	case now.Before(l.pumping.after):
		at = earlier(at, l.pumping.after)
	case g == shut && !l.memory.full:
		at = earlier(at, l.sweepAtLocked())
	}
	if g == open && l.terms.pull && l.pull.waiting == 0 && l.memory.queue.events > 0 {
		at = earlier(at, l.pull.until())
	}
	if g == open && l.memory.queue.ready.len() > 0 {
		at = earlier(at, l.sending.nextToken(now))
	}
	if soon := now.Add(time.Millisecond); !at.IsZero() && at.Before(soon) {
		return soon // whatever it is: a lane does not keep the clock busy
	}
	return at
}

// earlier and later are of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
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
	case l.terms.pull && l.pull.waiting == 0 && !now.Before(l.pull.until()):
		return shut // nobody receives, nor did a moment ago
	case l.terms.pull:
		return open
	}
	return l.endpoint.gate(l, now)
}

// offer gives the lane an event that it matches, from the feed it has joined. It is taken, or the
// track stands still before it. It reports whether the lane has to be poked.
func (l *lane) offer(t *track, a *arrival) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.joined.Load() || l.gone || l.moved || a.n < t.mark.Next() || !l.terms.takes(a.time) {
		return false
	}
	if !l.admitsLocked(len(a.raw)) {
		t.detach(a.n, a.time)
		return true
	}
	t.mark.Begin(a.n)
	l.counts.matched++
	l.memory.push(l.terms, a.item(l, t), a.time)
	return true
}

// admitsLocked reports whether an event of a size may be taken into the queue now.
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
		if l.sending.probeSent || l.memory.queue.events >= l.terms.batchEvents() {
			return false
		}
	default:
		return false
	}
	return l.fitLocked(l.memory.fits(l.terms, size))
}

// fitLocked notes where something did not fit. A lane of which nothing will leave by itself waits
// for what others give back.
func (l *lane) fitLocked(fits bool) bool {
	if !fits {
		l.memory.full = true
		if l.memory.queue.events+l.memory.chores()+l.sending.starting+l.sending.busy == 0 {
			l.s.budget.wait(l)
		}
	}
	return fits
}

// finishLocked is the end of an item: its fate is durable, or it was delivered. An entry was
// reported as done before, without the lock.
func (l *lane) finishLocked(it *item, now time.Time) {
	if it.track != nil {
		it.track.mark.Finish(it.Sequence)
		it.track.feed.note()
	}
	l.memory.queue.advance(it, now)
	l.memory.letGo(it)
}

// shedLocked gives up what is in memory and cannot be sent: what came from the log can be read
// again, what came from a parked log or retry log goes back to the parked log.
func (l *lane) shedLocked() {
	if l.memory.queue.events == 0 {
		return
	}
	byTrack := make(map[*track][]*item, len(l.tracks))
	for _, it := range l.memory.queue.clear() {
		if it.track == nil {
			l.stock.returning = append(l.stock.returning, it)
			continue
		}
		byTrack[it.track] = append(byTrack[it.track], it)
		l.memory.letGo(it)
	}
	for t, items := range byTrack {
		t.putDown(items)
	}
}

// adopt gives the lane new terms and its endpoint, and gives back the old ones.
func (l *lane) adopt(t *terms, e *endpoint, now time.Time) (*terms, *endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, had := l.terms, l.endpoint
	if old.ordered != t.ordered {
		l.shedLocked() // to be read again, in the other order
		l.memory.queue.order(t.ordered)
	}
	l.terms, l.endpoint = t, e
	if e != had {
		l.sending.probeSent = false
	}
	if old.limit != t.limit {
		l.sending.limiter = t.limiter()
	}
	for _, track := range l.tracks {
		track.version++ // what is being read may not be wanted any more, or more of it
	}
	l.memory.full = false
	l.pull.notify(!t.pull) // who waits for something to receive waits in vain
	l.pokeLocked(now)
	return old, had
}

// end is the lane's, with its subscription. What it has in memory is nobody's any more.
func (l *lane) end() *endpoint {
	l.mu.Lock()
	items := l.emptyLocked()
	l.gone = true
	l.waitNoMoreLocked()
	for _, t := range l.tracks {
		t.version++
		t.joined.Store(false)
	}
	l.pull.notify(true)
	l.setAlarmLocked(time.Time{})
	e := l.endpoint
	l.mu.Unlock()
	notifyDone(items)
	return e
}

// emptyLocked gives up what is in memory.
func (l *lane) emptyLocked() []*item {
	items := append(l.memory.clear(), l.stock.keep()...)
	for _, h := range l.pull.held {
		items = append(items, h.item)
	}
	for _, it := range items {
		l.memory.letGo(it)
	}
	l.stock, l.pull.held = stock{}, nil
	return items
}

// move lets the lane take nothing more, since its shard is given up. The feeds do not have it any
// more. What is under way ends by itself, or with the holding.
func (l *lane) move() *endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved = true
	l.waitNoMoreLocked()
	l.pull.notify(true)
	l.setAlarmLocked(time.Time{})
	return l.endpoint
}

// drop gives up what a lane that has moved has in memory. It is not done: the next holder reads it
// again. Nobody works for the lane any more.
func (l *lane) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emptyLocked()
}

func (l *lane) isGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

func (l *lane) termsNow() *terms {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terms
}

// low is the number below which everything of a partition is done.
func (l *lane) low(partition int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tracks[partition].low()
}

// position is where it stands in a partition by itself.
func (l *lane) position(partition int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tracks[partition].position
}
