package circuit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// writeEvery is how often a tally is written at most.
const writeEvery = 250 * time.Millisecond

// ownTally is what is known of this instance's tally in the store.
type ownTally struct {
	version processor.Version // empty: there is none
	unsure  bool              // the version may be another: read first
	written breaker.Tally
	at      time.Time // when written was
	tried   time.Time
}

// tallyDue is when the tally is to be written: at once where there is none, so that the function is
// found; soon when there are new failures, now and then while any are in the window, and once more
// when there are none, for show. While the circuit is not closed nobody counts, and nothing is
// written but, once, what was counted before.
func (l *loop) tallyDue(now time.Time) time.Time {
	t, closed, counts := l.m.tally(now)
	due, within := now.Add(never), l.m.cfg.Policy.Within
	switch {
	case l.readAt.IsZero(): // what is there is not known yet
	case !closed && t.Total != l.own.written.Total: // what opened it is told once, however quickly it did
		due = now
	case !closed:
	case l.own.version == "":
		due = now
	case !counts:
	case (t.Down > 0) != (l.own.written.Down > 0): // those who reach it are to say so, and to stop
		due = now
	case l.asked && t.Term != l.own.written.Term: // what is decided is told by how many more there are than it shows
		due = now
	case len(t.Buckets) == 0 && len(l.own.written.Buckets) > 0:
		due = l.own.at.Add(within)
	case len(t.Buckets) == 0 && len(l.seen) == 0:
	case len(t.Buckets) == 0: // before others take it for a dead instance's
		due = l.own.at.Add(l.stale() / 2)
	case t.Total != l.own.written.Total:
		due = now
	default: // its ages are proven then to those who could not know when it was written
		due = l.own.at.Add(l.rewriteEvery())
	}
	if again := l.own.at.Add(l.rewriteEvery()); closed && again.Before(due) && (counts && t.Down > l.own.written.Down || t.Up > 0 && l.m.othersDown()) {
		due = again // nobody is to take for down everywhere what is well from here, nor the reverse
	}
	if soonest := l.own.tried.Add(writeEvery); due.Before(soonest) {
		return soonest
	}
	return due
}

// writeTally writes it if it is due. What may have been written without an answer is read again
// first.
func (l *loop) writeTally(ctx context.Context) error {
	now := time.Now()
	if now.Before(l.tallyDue(now)) {
		return nil
	}
	if l.own.unsure {
		if err := l.findOwn(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now = time.Now()
	t, _, _ := l.m.tally(now)
	l.own.tried = now
	f, err := l.m.cfg.Store.Put(ctx, l.m.cfg.Group, processor.Entry{Key: l.ownKey(), Value: breaker.EncodeTally(t), Version: l.own.version})
	if err != nil {
		l.own.unsure = true
		if errors.Is(err, processor.ErrConflict) {
			return nil // somebody took us for dead; the next time is soon
		}
		return fmt.Errorf("write the failures of circuit %s: %w", l.m.cfg.Function, err)
	}
	l.own.version, l.own.written, l.own.at = f.Version, t, now
	return nil
}

func (l *loop) ownKey() string { return tallyKey(l.m.cfg.Function, l.m.cfg.Instance) }

// findOwn reads in which version this instance's tally is there.
func (l *loop) findOwn(ctx context.Context) error {
	found, err := l.readTallies(ctx)
	if err != nil {
		return err
	}
	l.own.version, l.own.unsure = "", false
	for _, f := range found {
		if f.Key == l.ownKey() {
			l.own.version = f.Version
		}
	}
	return nil
}

func (l *loop) readTallies(ctx context.Context) ([]processor.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := l.m.cfg.Store.Entries(ctx, l.m.cfg.Group, tallies(l.m.cfg.Function))
	if err != nil {
		return nil, fmt.Errorf("read the failures of circuit %s: %w", l.m.cfg.Function, err)
	}
	return found, nil
}

// removeTally is the last that is heard of this instance. Who has seen its failures goes on
// counting them.
func (l *loop) removeTally(ctx context.Context) error {
	for range 3 {
		if l.own.unsure {
			if err := l.findOwn(ctx); err != nil {
				return err
			}
		}
		if l.own.version == "" {
			return nil
		}
		err := l.m.cfg.Store.Remove(ctx, l.m.cfg.Group, processor.Entry{Key: l.ownKey(), Version: l.own.version})
		if err == nil {
			return nil
		}
		l.own.unsure = true
	}
	return fmt.Errorf("remove %s: it is another's again and again", l.ownKey())
}
