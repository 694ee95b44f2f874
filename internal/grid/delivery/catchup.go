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
	l       *lane
	t       *track
	terms   *terms
	version int
	// place is the next number to look at. Below next nothing is new: only what is in left, that was
	// put down, is taken.
	position, next int64
	left           []int64
	reading        reading
	looked         int
	stopped        bool
}

// catchUp reads on where a track stands by itself, and joins it to the feed when it is not
// behind any more.
func (l *lane) catchUp(ctx context.Context, t *track) error {
	c := l.catching(t)
	if c == nil || t.feed.join(t) {
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
			c.end(int64(cursor.At()))
			break
		}
		c.take(&run)
	}
	t.feed.join(t)
	return nil
}

// end is reached where there is nothing more to read. It may be beyond the place: retention may
// have removed everything.
func (c *catching) end(n int64) {
	if n > c.position {
		c.move(n, time.Time{})
	}
}

// catching begins a step; nil if there is nothing to do.
func (l *lane) catching(t *track) *catching {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone || l.full || l.terms.filter == nil || t.joined.Load() || time.Now().Before(t.after) {
		return nil
	}
	c := &catching{l: l, t: t, terms: l.terms, version: t.version, position: t.position, next: t.mark.Next()}
	for _, r := range t.left {
		c.left = append(c.left, r.n)
	}
	return c
}

// pass goes on behind damage.
func (c *catching) pass(err error) error {
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) && corrupt.Next != eventlog.NoSequence {
		c.l.s.metrics.unreadable.Add(float64(max(int64(corrupt.Next)-c.position, 0)))
		c.move(int64(corrupt.Next), time.Time{})
	}
	return err
}

// take looks at the events of a run, and stops before the first that cannot be taken.
func (c *catching) take(run *eventlog.Run) {
	if c.tooSoon(run.Time) {
		c.stop(int64(run.First), run.Time)
		return
	}
	if lost := int64(run.First) - c.position; lost > 0 {
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

// tooSoon tells whether the lane stands still and nothing of the run is too old, so that there is
// no use in looking at it.
func (c *catching) tooSoon(published time.Time) bool {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	now := time.Now()
	return c.l.gateLocked(now) == shut && !retry.Expired(c.terms.policy, published, now)
}

// concerns tells whether an event is the lane's, and leaves the reading on it.
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
	if t.version != c.version || l.gone {
		return false
	}
	old := retry.Expired(c.terms.policy, run.Time, now)
	if old && !l.choreRoomLocked(len(a.raw)) || !old && !l.admitsLocked(len(a.raw)) {
		return false
	}
	it := a.item(l, t)
	l.progress++
	if r, ok := t.pickUp(n); ok {
		r.restore(it)
	} else {
		t.mark.Begin(n)
		l.counts.matched++
	}
	if old {
		l.expired = append(l.expired, it)
		l.heldBytes += it.bytes()
	} else {
		l.pushLocked(it, now)
	}
	return true
}

// choreRoomLocked tells whether there is room for something that is to be put away.
func (l *lane) choreRoomLocked(size int) bool {
	if len(l.expired) < l.terms.queueEvents && l.s.budget.allows(l.heldBytes, itemBytes+size) {
		return true
	}
	l.fullLocked()
	return false
}

// stop ends the step before an event.
func (c *catching) stop(n int64, published time.Time) {
	c.stopped = true
	c.move(n, published)
}

// move tells the track how far everything has been looked at, unless others have moved it.
func (c *catching) move(n int64, head time.Time) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.t.version != c.version {
		c.stopped = true
		return
	}
	if n != c.position {
		c.l.progress++
	}
	c.position = n
	c.t.moveTo(n, head)
	c.t.feed.note()
}
