package delivery

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// catchUpEvents is how many events are looked at in one step of one lane, before others have
// their turn.
const catchUpEvents = 4096

// errStopping: the yard stops.
var errStopping = errors.New("the yard stops")

// catching is one step of a detached track towards the feed.
type catching struct {
	filling *filling
	l       *lane
	t       *track
	terms   *terms
	version int
	// position is the next number to look at. Below next nothing is new: only what is in left, that
	// was put down, is taken.
	position, next int64
	left           []int64
	reading        reading
	looked         int
	stopped        bool
}

// catchUp reads on where a track stands by itself, and joins it to the feed when it is not
// behind any more.
func (f *filling) catchUp(ctx context.Context, t *track) error {
	c := f.catching(t)
	if c == nil {
		return nil
	}
	if t.feed.join(t) {
		f.did = true
		return nil
	}
	cursor, err := t.feed.origin.cursor(ctx, t.feed.partition, c.position)
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	for c.looked < catchUpEvents && !c.stopped {
		if ctx.Err() != nil {
			return errStopping
		}
		run, err := cursor.TryNext(ctx)
		if err != nil {
			return c.pass(err)
		}
		if len(run.Events) == 0 {
			// The end may be beyond the position: retention may have removed everything.
			if end := int64(cursor.At()); end > c.position {
				c.move(end, time.Time{})
			}
			break
		}
		c.take(ctx, &run)
	}
	f.did = t.feed.join(t) || f.did
	return nil
}

// catching begins a step; nil if there is nothing to do.
func (f *filling) catching(t *track) *catching {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone || l.moved || l.memory.full || l.terms.filter == nil || t.joined.Load() || time.Now().Before(t.after) {
		return nil
	}
	c := &catching{filling: f, l: l, t: t, terms: l.terms, version: t.version, position: t.position, next: t.mark.Next()}
	for _, r := range t.left {
		c.left = append(c.left, r.n)
	}
	return c
}

// pass goes on behind damage.
func (c *catching) pass(err error) error {
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok && corrupt.Next != eventlog.NoSequence {
		c.l.s.metrics.unreadable.Add(float64(max(int64(corrupt.Next)-c.position, 0)))
		c.move(int64(corrupt.Next), time.Time{})
	}
	return err
}

// take looks at the events of a run, and stops before the first that cannot be taken.
func (c *catching) take(ctx context.Context, run *eventlog.Run) {
	now := time.Now()
	c.l.mu.Lock()
	still := c.l.gateLocked(now) == shut
	c.l.mu.Unlock()
	if still && !retry.Expired(c.terms.policy, run.Time, now) { // there is no use in looking at it
		c.stop(int64(run.First), run.Time)
		return
	}
	if lost := lost(ctx, c.t.feed.origin, c.t.feed.partition, c.position, run); lost > 0 {
		c.l.s.metrics.overtaken.Add(float64(lost))
		c.l.s.log.Warn("events were removed before a subscription had them: retention is too short",
			"subscription", c.terms.sub.Name, "source", c.l.source.label, "events", lost)
	}
	for i := range run.Events {
		n := int64(run.First) + int64(i)
		if !c.concerns(n, run, i) {
			continue
		}
		if !c.takeOne(run, n) {
			c.stop(n, run.Time)
			return
		}
	}
	c.looked += len(run.Events)
	c.move(int64(run.Next()), time.Time{})
}

// concerns reports whether an event is the lane's, and leaves the reading on it.
func (c *catching) concerns(n int64, run *eventlog.Run, i int) bool {
	again := n < c.next
	if again {
		if _, ok := slices.BinarySearch(c.left, n); !ok {
			return false
		}
	} else if !c.terms.takes(run.Time) {
		return false
	}
	f := c.t.feed
	if err := f.origin.scan(&c.reading, f.partition, n, run.Time, &run.Events[i]); err != nil {
		c.l.s.unreadable(f.log, n, err)
		return false
	}
	return again || c.terms.filter.Match(&c.reading.envelope)
}

// takeOne takes an event into the lane: to be sent, or, where it is too old, to be put away. It
// does not if there is no room, or the lane stands still, or has been changed meanwhile.
func (c *catching) takeOne(run *eventlog.Run, n int64) bool {
	l, t := c.l, c.t
	a := t.feed.arrival(&c.reading, run, n)
	defer a.end(l.s.budget)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.version != c.version || l.gone || l.moved {
		return false
	}
	m := &l.memory
	old := retry.Expired(c.terms.policy, run.Time, now)
	if old && !l.fitLocked(m.fitsExpired(l.terms, len(a.raw))) || !old && !l.admitsLocked(len(a.raw)) {
		return false
	}
	it := a.item(l, t)
	c.filling.did = true
	if r, ok := t.pickUp(n); ok { // what was known of it when it was put down
		it.Attempts, it.LastAttempt, it.LastOutcome, it.LastStatus, it.Due = r.attempts, r.lastAttempt, r.lastOutcome, r.lastStatus, r.due
		it.History = r.history
	} else {
		t.mark.Begin(n)
		l.counts.matched++
	}
	if old {
		m.expire(it)
	} else {
		m.push(l.terms, it, now)
	}
	return true
}

// stop ends the step before an event.
func (c *catching) stop(n int64, published time.Time) {
	c.stopped = true
	c.move(n, published)
}

// move sets how far the track has looked at everything, unless others have moved it.
func (c *catching) move(n int64, head time.Time) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.t.version != c.version {
		c.stopped = true
		return
	}
	c.filling.did = c.filling.did || n != c.position
	c.position = n
	c.t.moveTo(n, head)
	c.t.feed.note()
}
