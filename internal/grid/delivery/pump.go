package delivery

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// pumps fill lanes that have fallen behind, a step for each in turn: from their parked logs, and
// from the log.
type pumps struct {
	crew *crew
	most int // how many lanes are filled at once; each holds a cursor meanwhile

	mu      sync.Mutex
	lanes   []*lane // in line; guarded by mu
	running int     // guarded by mu
}

// add puts a lane in line. It is called under lane.mu, once until pumped is called.
func (p *pumps) add(l *lane) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running < p.most {
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
		(&filling{lane: l}).run(s)
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

// pumping is how a lane stands with the pumps. It is the lane's; guarded by lane.mu.
type pumping struct {
	active bool      // in the hands of the pumps, or waits for them
	after  time.Time // when they may try again after a failure
	swept  time.Time // when a lane that stands still was last looked through
}

// sweepEvery is how often at most a lane that stands still is looked through for what has
// become too old.
const sweepEvery = 2 * time.Second

// allowed reports whether the lane may be given to the pumps.
func (p *pumping) allowed(now time.Time) bool { return !p.active && !now.Before(p.after) }

// pumpWantedLocked reports whether there is a use in pumping the lane.
func (l *lane) pumpWantedLocked(g gate, now time.Time) bool {
	behind := func(t *track) bool { return l.terms.filter != nil && !t.joined.Load() && !now.Before(t.after) }
	switch {
	case len(l.stock.returning) > 0:
		return true
	case l.memory.full || !l.stock.any() && !slices.ContainsFunc(l.tracks, behind):
		return false
	case g == open:
		return l.memory.low(l.terms)
	case g == probe:
		return l.memory.queue.events == 0 && !l.sending.probeSent
	case g == vacant:
		return false // nobody may send, and nothing is looked through while somebody soon may
	}
	at := l.sweepAtLocked()
	return !at.IsZero() && !now.Before(at)
}

// sweepAtLocked is when a lane that stands still has to be looked through for what is too old:
// when the first of what waits will be, or at once where that is not known. Zero: nothing waits.
func (l *lane) sweepAtLocked() time.Time {
	at, ttl := time.Time{}, l.terms.ttl
	oldAt := func(published time.Time) time.Time { // of one of which nothing is known that may be now
		if published.IsZero() {
			return l.pumping.swept.Add(sweepEvery)
		}
		return published.Add(ttl)
	}
	if it := l.stock.peeked; it != nil {
		at = it.Alive.Add(ttl)
	} else if l.stock.maybe {
		at = oldAt(time.Time{})
	}
	for _, t := range l.tracks {
		if l.terms.filter != nil && !t.joined.Load() {
			at = earlier(at, later(oldAt(t.head), t.after))
		}
	}
	if at.IsZero() {
		return at
	}
	return later(at, l.pumping.swept.Add(sweepEvery))
}

// filling is a pump's turn with one lane, and the pump's goroutine's alone.
type filling struct {
	lane *lane
	// did: something came of it. A lane for which nothing could be done is left alone for a moment.
	did bool
}

// idlePause is how long a lane is left alone that the pump could do nothing for.
const idlePause = 50 * time.Millisecond

// run fills the lane for a while: what goes back to the parked log first, then from the parked log,
// then from the log, until there is no room, or nothing left, or others have waited long enough.
// Whether there is to be another turn is found out like everything else.
func (f *filling) run(s shift) {
	l := f.lane
	err := f.putBack(s.taking)
	if err == nil {
		err = f.drain(s.taking)
	}
	for _, t := range l.tracks {
		if s.taking.Err() == nil {
			f.unreached(t, f.catchUp(s.taking, t), time.Now())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.pumping.active = false
	if l.gateLocked(now) == shut {
		l.pumping.swept = now
	}
	switch {
	case err != nil:
		l.pumping.after = now.Add(firstPause)
	case !f.did:
		l.pumping.after = now.Add(idlePause)
	}
	if err != nil && !l.gone {
		l.s.log.Warn("the parked log of a subscription cannot be used, trying again", "subscription", l.terms.sub.Name,
			"source", l.source.label, "after", firstPause, "error", err)
	}
	l.pokeLocked(now)
}

// unreached leaves a partition alone for a while that could not be read. Others are not held up
// by it.
func (f *filling) unreached(t *track, err error, now time.Time) {
	l := f.lane
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
