package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Reading and writing what lasts of a ledger. All of this is for the holder of the turn.

// load reads the snapshot and what the log has behind it, once.
func (l *ledger) load(ctx context.Context) error {
	if l.loaded {
		return nil
	}
	err := mirror.Uncontested(ctx, func() error {
		entry, err := l.broker.meta.Get(ctx, l.key())
		if err != nil && !errors.Is(err, meta.ErrNotFound) {
			return fmt.Errorf("read producers: %w", err)
		}
		if err == nil {
			return l.restore(ctx, entry)
		}
		bounds, err := l.partition.Bounds(ctx)
		if err != nil {
			return err
		}
		l.accounts.setSeen(bounds.Next) // there is nothing of producers in the log so far
		return l.write(ctx)
	})
	l.loaded = err == nil
	return err
}

func (l *ledger) key() string { return producerKey(l.hub.log, l.number) }

func (l *ledger) restore(ctx context.Context, entry meta.Entry) error {
	s, err := decodeSnapshot(entry.Value)
	if err != nil {
		return fmt.Errorf("read %s: %w", entry.Key, err)
	}
	l.accounts.restore(s)
	l.revision, l.saved = entry.Revision, s.upTo
	bounds, err := l.partition.Sealed(ctx)
	if err != nil {
		return err
	}
	if bounds.Next < s.upTo {
		// Power loss makes a log shorter than it was where syncing is left to the operating
		// system. What the snapshot says of producers is the best there is; but the numbers it
		// is true for will be given again.
		l.broker.log.Warn("the log is shorter than when its producers were last written down",
			"hub", l.hub.Name, "partition", l.number, "end", bounds.Next, "was", l.saved)
		l.accounts.setSeen(bounds.Next)
		return l.write(ctx)
	}
	if err := l.read(ctx, s.upTo, bounds.Next); err != nil {
		return err
	}
	l.accounts.setSeen(bounds.Next)
	return nil
}

// save writes the snapshot. Where another did so meanwhile, both count.
func (l *ledger) save(ctx context.Context) error {
	return mirror.Uncontested(ctx, func() error {
		conflict := l.write(ctx)
		if !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		// What is there may be our own: the answer to an earlier write can have been lost.
		entry, err := l.broker.meta.Get(ctx, l.key())
		if errors.Is(err, meta.ErrNotFound) {
			l.revision = 0
			return conflict
		}
		if err != nil {
			return fmt.Errorf("read producers: %w", err)
		}
		s, err := decodeSnapshot(entry.Value)
		if err != nil {
			return fmt.Errorf("read %s: %w", entry.Key, err)
		}
		l.revision = entry.Revision
		l.accounts.merge(s)
		return conflict
	})
}

// write stores the snapshot if it is still the one we know, and takes it back if the hub was
// deleted under us; see wasDeleted. A snapshot that was there before the deletion finds.
func (l *ledger) write(ctx context.Context) error {
	s, changes := l.accounts.snapshot()
	revision, err := l.broker.meta.CompareAndSet(ctx, l.key(), l.revision, s.encode())
	if err != nil {
		return fmt.Errorf("write producers: %w", err)
	}
	deleted := l.broker.seemsDeleted
	if l.revision == 0 {
		deleted = l.broker.wasDeleted
	}
	l.revision, l.saved, l.savedChanges = revision, s.upTo, changes
	l.accounts.written(s)
	if !deleted(ctx, l.hub) {
		return nil
	}
	if err := l.broker.meta.Delete(ctx, l.key(), l.revision); err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("withdraw producers of deleted hub %q: %w", l.hub.Name, err)
	}
	return eventlog.ErrRemoved
}

// rest gives up what is known of producers, where nobody has used one here for that long: another node
// keeps their snapshot close to the end of the log, and here the log would have to be read from
// where this node has stopped. Who still holds one takes it up again as after a start. It reports
// whether there was nothing to tend to.
func (l *ledger) rest(ctx context.Context, after time.Duration) bool {
	if l.takeTurn(ctx) != nil {
		return false
	}
	defer l.endTurn()
	if l.loaded && l.accounts.clearUnused(time.Now().Add(-after)) {
		l.loaded = false
	}
	return !l.loaded
}

// tend brings the snapshot up to the end of the log, if that is worth it: where a producer has done
// something, or more than slack bytes are behind the snapshot.
func (l *ledger) tend(ctx context.Context, slack int64) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return err
	}
	// While there is doubt, the snapshot cannot move, and its producer may not come back.
	for _, a := range l.accounts.doubtful() {
		if err := l.settleDoubt(ctx, a); err != nil {
			return err
		}
	}
	// In this order: what is below the bounds and of a producer has landed by now, or is
	// in the air or in doubt, which the floor allows for.
	bounds, err := l.partition.Bounds(ctx)
	if err != nil {
		return err
	}
	// Where the log is smaller than it was, retention has removed some, and nobody knows by how
	// much it has grown.
	small := bounds.Bytes >= l.savedBytes && bounds.Bytes-l.savedBytes <= slack
	if !l.accounts.sole {
		if _, changes := l.accounts.advance(0, time.Now()); small && changes == l.savedChanges {
			return nil // and what there is need not be read yet
		}
		if err := l.catchUp(ctx, l.accounts.unread(nil), bounds.Next); err != nil {
			return err
		}
	}
	floor, changes := l.accounts.advance(bounds.Next, time.Now())
	if changes == l.savedChanges && (floor == l.saved || small) {
		return nil
	}
	if err := l.save(ctx); err != nil {
		return err
	}
	l.savedBytes = bounds.Bytes
	return nil
}
