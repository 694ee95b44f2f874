package circuit

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// sighting is another's tally as it was seen.
type sighting struct {
	version processor.Version // empty: it is gone
	changed time.Time         // when version was first seen
	last    breaker.Tally     // in that version
	unknown bool              // how old that was when it was seen
	// seen is the newest form whose age is known; no time: none.
	seen breaker.Seen
	// good is when its newest call that succeeded began, at the earliest; zero: none is known.
	good time.Time
}

// A tally that has not changed for so long is a dead instance's: a living one that is not alone
// writes it again in half the time.
const (
	staleWindows = 10
	staleLeast   = 10 * time.Minute
	sweepEvery   = time.Minute
	// sweepMost is how many are removed at a time: Run has other things to do, and all members do
	// it.
	sweepMost = 4
	// slowness is how many times longer than a read takes its news may be old.
	slowness = 4
)

// observe takes what was read for what the others count; it tells whether anything is new. A tally
// whose version has changed was written since the last read, or since the store reported it: where
// that is long ago its ages are not known, and what was known before goes on counting until it
// changes again.
func (l *loop) observe(found []processor.Entry, now time.Time) (news bool) {
	if l.readAt.IsZero() { // an earlier life of this instance may have decided what its tally does not show
		record, _ := l.m.present()
		l.m.goOn(record.Decided[l.ownName()])
	}
	fresh := l.fresh(now)
	there := map[string]bool{}
	for _, f := range found {
		there[f.Key] = true
		if f.Key != l.ownKey() {
			news = l.observeOne(f, fresh, now) || news
			continue
		}
		if l.readAt.IsZero() { // what an earlier life of this instance has left, which the others count by its age
			l.own.written, _ = breaker.DecodeTally(f.Value)
			l.own.at = now
			l.m.goOn(l.own.written.Total)
		}
		l.own.version, l.own.unsure = f.Version, false
	}
	if !there[l.ownKey()] {
		l.own.version, l.own.unsure = "", false
	}
	var others []breaker.Seen
	var good time.Time
	for key, s := range l.seen {
		if s.good.After(good) {
			good = s.good
		}
		if !there[key] {
			s.version = ""
			if now.Sub(s.seen.At) > l.m.cfg.Policy.Within { // gone, and it counts for nothing
				delete(l.seen, key)
				continue
			}
		}
		if !s.seen.At.IsZero() {
			others = append(others, s.seen)
		}
	}
	l.m.observed(others, good)
	return news
}

// fresh tells whether what was written since the last read was written just now. The first read
// tells nothing: a tally may have lain there for days. A slow store is given the time that it
// takes: this read, the last, and what was written in between.
func (l *loop) fresh(now time.Time) bool {
	if l.readAt.IsZero() {
		return false
	}
	if l.asked && l.watched.Load() && l.turns.Load() == l.readTurns { // whatever changed was reported, or is about to be
		return true
	}
	since := l.readAt
	if l.reportedAt.After(since) && l.turns.Load() == l.readTurns { // else there may have been something that was not reported
		since = l.reportedAt
	}
	return now.Sub(since) <= max(2*l.m.cfg.Poll, l.m.cfg.Policy.Within/5)+slowness*now.Sub(l.tried)
}

func (l *loop) observeOne(f processor.Entry, fresh bool, now time.Time) (news bool) {
	s := l.seen[f.Key]
	if s == nil {
		s = &sighting{}
		l.seen[f.Key] = s
	}
	if s.version == f.Version {
		return false
	}
	s.version, s.changed = f.Version, now
	t, err := breaker.DecodeTally(f.Value)
	s.last, s.unknown = t, !fresh
	if t.Good > 0 && !l.readAt.IsZero() { // it was not there when that read began, but may have been on its way
		s.good = l.readAt.Add(-callTimeout - t.Good)
	}
	if err != nil {
		l.m.cfg.Log.Debug("failures of another instance cannot be read, they are not counted", "entry", f.Key, "error", err)
	} else if fresh {
		s.seen = breaker.Seen{Tally: t, At: now}
	}
	return true
}

// sweep removes the tallies of the dead, now and then. All members try; whoever is first has done
// it.
func (l *loop) sweep(ctx context.Context) {
	now := time.Now()
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	stale, left := l.stale(), sweepMost
	for key, s := range l.seen { // in any order, so that members begin with different ones
		if s.version == "" || now.Sub(s.changed) < stale {
			continue
		}
		if left--; left < 0 {
			return
		}
		if err := l.remove(ctx, processor.Entry{Key: key, Version: s.version}); err != nil && !errors.Is(err, processor.ErrConflict) {
			l.m.cfg.Log.Debug("the failures of an instance that is gone could not be removed", "entry", key, "error", err)
			return // the next time is soon enough
		} // after a conflict another was quicker, or it lives
	}
}

func (l *loop) stale() time.Duration { return max(staleWindows*l.m.cfg.Policy.Within, staleLeast) }

func (l *loop) remove(ctx context.Context, f processor.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return l.m.cfg.Store.Remove(ctx, l.m.cfg.Group, f)
}
