package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/sleep"
)

// take disposes of what has fallen due in the retry logs: to its lane, where that can take it, or
// to the lane's parked log, so that nobody's trouble holds up what is due for others. What belongs
// to no subscription any more is dropped.
func (h *holding) take(ctx context.Context, due []retrylog.Entry) {
	groups := make(map[string][]retrylog.Entry)
	for _, e := range due {
		groups[e.Subscription] = append(groups[e.Subscription], e)
	}
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		var failed error
		for id, entries := range groups {
			rest, err := h.dispose(ctx, id, entries)
			if groups[id] = rest; len(rest) == 0 {
				delete(groups, id)
			}
			if err != nil {
				failed = err
			}
		}
		if len(groups) == 0 || ctx.Err() != nil {
			return // what is left is handed out again after the next start
		}
		h.s.log.Warn("cannot put events that are due into parked logs, trying again", "after", wait, "error", failed)
		if sleep.For(ctx, wait, nil) != nil {
			return
		}
	}
}

// dispose sees to what is due for one subscription. What it gives back could not be stored.
func (h *holding) dispose(ctx context.Context, id string, entries []retrylog.Entry) ([]retrylog.Entry, error) {
	if ctx.Err() != nil {
		return entries, nil
	}
	s := h.s
	l, missing := s.lane(id)
	gone := func() bool { return missing == nil && l.isGone() }
	var parked *retrylog.Parked
	switch {
	case missing == nil:
		parked = l.parked // which refuses once the subscription is deleted
		if entries = l.receiveDue(entries); len(entries) == 0 {
			return nil, nil
		}
	default:
		// One of which it cannot be found out exists as far as anybody knows.
		if deleted, err := h.deleted(ctx, id); err == nil && deleted {
			for _, e := range entries {
				e.Done()
			}
			return nil, nil
		}
		parked = h.logs.Parked(id)
	}
	// One that exists and has no lane is of a source that cannot be read just now. It may get a
	// lane meanwhile, which then has to hear of what was put into the parked log.
	rest, err := shelveEntries(entries, func(ps []pending.Delivery) error {
		err := parked.Put(ctx, ps)
		if l, missing := s.lane(id); err == nil && missing == nil {
			l.restocked(time.Now())
		}
		return err
	}, gone)
	if err == nil {
		return nil, nil
	}
	// One subscription's parked log must not hold up what is due for others: its entries wait in a
	// retry log for a while, or, where that fails as well, in the lane's memory.
	tried := len(rest)
	rest, again := shelveEntries(rest, func(ps []pending.Delivery) error { return h.logs.Put(ctx, longestPause, ps) }, gone)
	s.log.Warn("the parked log of a subscription cannot be written, what is due for it waits elsewhere",
		"id", id, "events", tried-len(rest), "after", longestPause, "error", errors.Join(err, again))
	if missing == nil {
		rest = l.strand(rest)
	}
	return rest, err
}

// strand keeps entries that could not be stored at all in memory, as far as there is room: the
// pump tries again.
func (l *lane) strand(entries []retrylog.Entry) []retrylog.Entry {
	if len(entries) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range entries {
		size := beside(&e.Delivery) + len(e.Event)
		if l.gone || l.moved || len(l.stock.returning) >= l.terms.queueEvents || !l.s.budget.allows(l.memory.bytes, size) {
			return entries[i:]
		}
		it := itemOf(l.s.budget, e)
		l.memory.bytes += it.bytes()
		l.stock.returning = append(l.stock.returning, it)
	}
	now := time.Now()
	l.pumping.after = later(l.pumping.after, now.Add(firstPause))
	l.pokeLocked(now)
	return nil
}

// receiveDue takes into the lane what it can, and gives back the rest.
func (l *lane) receiveDue(entries []retrylog.Entry) []retrylog.Entry {
	l.mu.Lock()
	now := time.Now()
	var rest, done []retrylog.Entry
	for _, e := range entries {
		switch {
		case l.gone:
			done = append(done, e)
		case l.moved:
			rest = append(rest, e)
		case l.s.late.took(keyOf(&e.Delivery)):
			l.counts.delivered++
			done = append(done, e)
		default: // it is taken if there is room and it may be sent, or is too old to be
			m, it := &l.memory, itemOf(l.s.budget, e)
			switch old := l.terms.expired(it, now); {
			case old && l.fitLocked(m.fitsExpired(l.terms, len(e.Event))):
				m.expire(it)
			case !old && l.admitsLocked(len(e.Event)):
				m.push(l.terms, it, now)
			default:
				it.free(m.budget)
				rest = append(rest, e)
			}
		}
	}
	l.pokeLocked(now)
	l.mu.Unlock()
	for _, e := range done {
		e.Done()
	}
	return rest
}

// shelveEntries stores entries and reports them as done. gone says whether there is anybody left to
// store them for.
func shelveEntries(entries []retrylog.Entry, put func([]pending.Delivery) error, gone func() bool) ([]retrylog.Entry, error) {
	rest := entries
	for portion, deliveries := range portions(entries, func(e retrylog.Entry) pending.Delivery { return e.Delivery }) {
		if err := put(deliveries); err != nil && !gone() {
			return rest, err
		}
		for _, e := range portion {
			e.Done()
		}
		rest = rest[len(portion):]
	}
	return nil, nil
}
