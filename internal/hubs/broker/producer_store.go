package broker

import (
	"context"
	"errors"
	"fmt"

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
		if errors.Is(err, meta.ErrNotFound) {
			return l.create(ctx)
		}
		if err != nil {
			return fmt.Errorf("read producers: %w", err)
		}
		return l.restore(ctx, entry)
	})
	l.loaded = err == nil
	return err
}

func (l *ledger) key() string { return producerKey(l.hub.log, l.number) }

// create writes the first snapshot: there is nothing of producers in the log so far.
func (l *ledger) create(ctx context.Context) error {
	bounds, err := l.partition.Bounds(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.seen = bounds.Next
	l.mu.Unlock()
	return l.write(ctx)
}

func (l *ledger) restore(ctx context.Context, entry meta.Entry) error {
	s, err := decodeSnapshot(entry.Value)
	if err != nil {
		return fmt.Errorf("read %s: %w", entry.Key, err)
	}
	l.mu.Lock()
	clear(l.accounts)
	for id, r := range s.producers {
		l.accounts[id] = &account{id: id, record: r, kept: true}
	}
	l.seen = s.upTo
	l.mu.Unlock()
	l.revision, l.saved = entry.Revision, s.upTo

	bounds, err := l.partition.Bounds(ctx)
	if err != nil {
		return err
	}
	if bounds.Next < s.upTo {
		return l.rewind(ctx, bounds.Next)
	}
	if err := l.read(ctx, s.upTo, bounds.Next); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = bounds.Next
	return nil
}

// rewind is for a log that is shorter than it was, as power loss makes it where syncing is
// left to the operating system. What the snapshot says of producers is the best there is;
// but the numbers it is true for will be given again.
func (l *ledger) rewind(ctx context.Context, end eventlog.Sequence) error {
	l.broker.log.Warn("the log is shorter than when its producers were last written down", "hub", l.hub.Name, "partition", l.number, "end", end, "was", l.saved)
	l.mu.Lock()
	l.seen = end
	l.mu.Unlock()
	return l.write(ctx)
}

// save writes the snapshot. Where another did so meanwhile, both count.
func (l *ledger) save(ctx context.Context) error {
	return mirror.Uncontested(ctx, func() error {
		err := l.write(ctx)
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if err := l.merge(ctx); err != nil {
			return err
		}
		return err
	})
}

// write stores the snapshot if it is still the one we know.
func (l *ledger) write(ctx context.Context) error {
	s, changes := l.picture()
	revision, err := l.broker.meta.CompareAndSet(ctx, l.key(), l.revision, s.encode())
	if err != nil {
		return fmt.Errorf("write producers: %w", err)
	}
	l.revision, l.saved, l.savedChanges = revision, s.upTo, changes
	l.mu.Lock()
	for id := range s.producers { // only we begin epochs: they are as they were
		l.accounts[id].kept = true
	}
	l.mu.Unlock()
	return l.withdraw(ctx)
}

func (l *ledger) picture() (s snapshot, changes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s = snapshot{upTo: l.floorLocked(), producers: make(map[int64]record, len(l.accounts))}
	for id, a := range l.accounts {
		if !a.blank() {
			s.producers[id] = a.record
		}
	}
	return s, l.changes
}

// withdraw takes the snapshot back if the hub was deleted under us; see wasDeleted.
func (l *ledger) withdraw(ctx context.Context) error {
	if !l.broker.wasDeleted(ctx, l.hub) {
		return nil
	}
	err := l.broker.meta.Delete(ctx, l.key(), l.revision)
	if err != nil && !mirror.GoneOrChanged(err) {
		return fmt.Errorf("withdraw producers of deleted hub %q: %w", l.hub.Name, err)
	}
	return eventlog.ErrRemoved
}

// merge takes in what another has written, maybe ourselves without having learnt of it.
func (l *ledger) merge(ctx context.Context) error {
	entry, err := l.broker.meta.Get(ctx, l.key())
	if errors.Is(err, meta.ErrNotFound) {
		l.revision = 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("read producers: %w", err)
	}
	s, err := decodeSnapshot(entry.Value)
	if err != nil {
		return fmt.Errorf("read %s: %w", entry.Key, err)
	}
	l.revision = entry.Revision
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = min(l.seen, s.upTo)
	for id, theirs := range s.producers {
		a := l.accounts[id]
		if a == nil {
			a = &account{id: id, record: record{epoch: -1}}
			l.addLocked(a)
		}
		if theirs.epoch > a.epoch {
			a.record, a.kept = theirs, true
		}
	}
	return nil
}

// floorLocked is the number below which all that producers stored is in the accounts.
func (l *ledger) floorLocked() eventlog.Sequence {
	floor := l.seen
	for _, a := range l.accounts {
		if a.air != nil {
			floor = min(floor, a.air.floor)
		}
		if a.doubt != nil {
			floor = min(floor, a.doubt.floor)
		}
	}
	return floor
}
