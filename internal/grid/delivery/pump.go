package delivery

import (
	"errors"
	"sync"
	"time"
)

// pumpers is how many lanes are filled at once. Each holds a cursor while it does.
const pumpers = 8

// pumps fill lanes that have fallen behind, a step for each in turn: from their parked logs, and
// from the log.
type pumps struct {
	crew *crew

	mu      sync.Mutex
	lanes   []*lane // in line; guarded by mu
	running int     // guarded by mu
}

// add puts a lane in line. It is called under lane.mu, once until pumped is called.
func (p *pumps) add(l *lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running < pumpers {
		if !p.crew.start(p.work) {
			return false
		}
		p.running++
	}
	p.lanes = append(p.lanes, l)
	return true
}

func (p *pumps) work(s shift) {
	for l := p.next(s); l != nil; l = p.next(s) {
		l.pump(s)
	}
}

// next gives the next lane in line; nil, and the pump is not counted any more, if there is none.
func (p *pumps) next(s shift) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lanes) == 0 || s.taking.Err() != nil {
		p.running--
		return nil
	}
	l := p.lanes[0]
	p.lanes[0] = nil
	p.lanes = p.lanes[1:]
	return l
}

// pumpLocked has the lane pumped if there is a use in it.
func (l *lane) pumpLocked(g gate, now time.Time) {
	if g == open || g == probe {
		l.stock.keep(l, now) // what was on its way back need not go
	}
	if !l.pumping && !now.Before(l.pumpAfter) && l.pumpWantedLocked(g, now) {
		l.pumping = l.s.pumps.add(l)
	}
}

func (l *lane) pumpWantedLocked(g gate, now time.Time) bool {
	switch {
	case len(l.stock.returning) > 0:
		return true
	case l.full || !l.stock.any() && !l.behindLocked(now):
		return false
	case g == open:
		return l.lowLocked()
	case g == probe:
		return l.queue.events == 0 && !l.probeSent
	case g == vacant:
		return false // nobody may send, and nothing is looked through while somebody soon may
	}
	at := l.sweepAtLocked()
	return !at.IsZero() && !now.Before(at)
}

// lowLocked tells whether the queue has gone down so far that filling it is worth opening a
// cursor.
func (l *lane) lowLocked() bool {
	return l.queue.events <= l.terms.queueEvents/2 && l.queue.bytes <= l.terms.queueBytes/2 &&
		(l.heldBytes == 0 || int64(l.heldBytes) <= l.s.budget.free()/2)
}

// sweepAtLocked is when a lane that stands still has to be looked through for what is too old:
// when the first of what waits will be, or at once where that is not known. Zero: nothing waits.
func (l *lane) sweepAtLocked() time.Time {
	at := time.Time{}
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if it := l.stock.peeked; it != nil {
		earlier(it.Alive.Add(l.terms.ttl))
	} else if l.stock.maybe {
		earlier(l.oldAt(time.Time{}))
	}
	for _, t := range l.tracks {
		if l.terms.filter != nil && !t.joined.Load() {
			earlier(later(l.oldAt(t.head), t.after))
		}
	}
	if at.IsZero() {
		return at
	}
	if next := l.swept.Add(sweepEvery); at.Before(next) {
		return next
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// oldAt is when an event is too old; of one of which nothing is known that may be now.
func (l *lane) oldAt(published time.Time) time.Time {
	if published.IsZero() {
		return l.swept.Add(sweepEvery)
	}
	return published.Add(l.terms.ttl)
}

// alarmLocked is when the lane has to be looked at again though nothing happens to it.
func (l *lane) alarmLocked(g gate, now time.Time) time.Time {
	at := l.queue.nextDue()
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	earlier(l.pull.nextLapse)
	for _, t := range l.tracks {
		if !t.joined.Load() && now.Before(t.after) {
			earlier(t.after)
		}
	}
	switch {
	case l.pumping:
	case now.Before(l.pumpAfter):
		earlier(l.pumpAfter)
	case g == shut && !l.full:
		earlier(l.sweepAtLocked())
	}
	if g == open && l.terms.pull && l.pull.waiting == 0 && l.queue.events > 0 {
		earlier(l.pull.until())
	}
	if g == open && l.limiter != nil && l.queue.ready.len() > 0 && !l.tokenLocked(now) {
		earlier(l.nextTokenLocked(now))
	}
	if soon := now.Add(time.Millisecond); !at.IsZero() && at.Before(soon) {
		return soon // whatever it is: a lane does not keep the clock busy
	}
	return at
}

// pump fills the lane for a while: what goes back to the parked log first, then from the parked log, then
// from the log, until there is no room, or nothing left, or others have waited long enough.
func (l *lane) pump(s shift) {
	before := l.progressNow()
	err := l.putBack(s.taking)
	if err == nil {
		err = l.drain(s.taking)
	}
	for _, t := range l.tracks {
		if s.taking.Err() == nil {
			l.unreached(t, l.catchUp(s.taking, t), time.Now())
		}
	}
	l.pumped(err, before, time.Now())
}

// unreached leaves a partition alone for a while that could not be read. Others are not held up
// by it.
func (l *lane) unreached(t *track, err error, now time.Time) {
	if err == nil || errors.Is(err, errStopping) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := firstPause
	if ended(err) {
		wait = longestPause
	} else if !l.gone {
		l.s.log.Warn("a subscription cannot catch up, trying again", "subscription", l.terms.sub.Name,
			"source", l.source.label, "partition", t.feed.partition, "after", wait, "error", err)
	}
	t.after = now.Add(wait)
}

func (l *lane) progressNow() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.progress
}

// idlePause is how long a lane is left alone that the pump could do nothing for.
const idlePause = 50 * time.Millisecond

// pumped ends a step. Whether there is to be another is found out like everything else.
func (l *lane) pumped(err error, before int, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pumping = false
	if l.gateLocked(now) == shut {
		l.swept = now
	}
	switch {
	case err != nil:
		l.pumpAfter = now.Add(firstPause)
	case l.progress == before:
		l.pumpAfter = now.Add(idlePause)
	}
	if err != nil && !l.gone {
		l.s.log.Warn("the parked log of a subscription cannot be used, trying again", "subscription", l.terms.sub.Name,
			"source", l.source.label, "after", firstPause, "error", err)
	}
	l.pokeLocked(now)
}
