package groups

import (
	"context"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// Entries reads the entries whose key begins with prefix.
func (k *Registry) Entries(ctx context.Context, of processor.Group, prefix string) ([]processor.Entry, error) {
	if err := checkEntry(groupentry.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	g, err := k.find(ctx, of)
	if err != nil {
		return nil, err
	}
	return list(ctx, g, "entries", entryPrefix, prefix, shown)
}

func shown(r entryRecord, key string, revision meta.Revision) processor.Entry {
	return processor.Entry{Key: key, Value: r.Value, Version: versionOf(revision)}
}

// EntriesByWriter is Entries, apart by who wrote them last: the yard's own process, or a client.
func (k *Registry) EntriesByWriter(ctx context.Context, of processor.Group, prefix string) (yards, clients []processor.Entry, err error) {
	if err := checkEntry(groupentry.CheckPrefix(prefix)); err != nil {
		return nil, nil, err
	}
	g, err := k.find(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	_, err = list(ctx, g, "entries", entryPrefix, prefix, func(r entryRecord, key string, revision meta.Revision) struct{} {
		to := &clients
		if r.Yard {
			to = &yards
		}
		*to = append(*to, shown(r, key, revision))
		return struct{}{}
	})
	return yards, clients, err
}

// datedEntry is an entry with the time at which it was put.
type datedEntry struct {
	entryRecord
	key string
}

func (g group) dated(ctx context.Context, prefix string) ([]datedEntry, error) {
	return list(ctx, g, "entries", entryPrefix, prefix, func(r entryRecord, key string, _ meta.Revision) datedEntry {
		return datedEntry{r, key}
	})
}

// Put stores an entry on condition of its version. ErrTooManyEntries where a new one would be
// one too many, or they would measure too much together.
func (k *Registry) Put(ctx context.Context, of processor.Group, e processor.Entry) (processor.Entry, error) {
	return k.PutBy(ctx, k.itself, of, e)
}

// PutBy is Put for a client. ErrForbidden where the entry is not the client's to write.
func (k *Registry) PutBy(ctx context.Context, by Caller, of processor.Group, e processor.Entry) (processor.Entry, error) {
	if err := checkEntry(groupentry.Check(e.Key, e.Value)); err != nil {
		return processor.Entry{}, err
	}
	g, err := k.find(ctx, of)
	if err != nil {
		return processor.Entry{}, err
	}
	expected, ok := revisionOf(e.Version)
	if !ok {
		return processor.Entry{}, processor.ErrConflict
	}
	if !by.Operator {
		if err := g.mayChange(ctx, by, actPut, e, expected); err != nil {
			return processor.Entry{}, err
		}
	}
	bond := by.bond()
	if strings.HasPrefix(e.Key, presencePrefix) && said(e.Value).Ended {
		bond = noBond // nobody's, so that the instance can begin again
	}
	key, record := g.Prefix+entryPrefix+e.Key, encode(entryRecord{V: recordVersion, Put: now(), Value: e.Value, Yard: by.yard, bond: bond})
	more := size{1, len(record)}
	var had meta.Entry
	if expected != 0 {
		had = k.stored(ctx, key)
		more = size{0, len(record) - len(had.Value)}
	}
	if err := g.admit(ctx, more); err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %q: %w", e.Key, err)
	}
	revision, err := k.meta.CompareAndSet(ctx, key, expected, record)
	if err != nil {
		return processor.Entry{}, entryError("put", e.Key, err)
	}
	if expected == 0 {
		if err := g.settle(ctx, created{key, revision}); err != nil {
			return processor.Entry{}, err
		}
	}
	k.tally.add(g.Prefix, more)
	notePresence(ctx, g, e.Key, had, e.Value)
	e.Version = versionOf(revision)
	return e, nil
}

// stored is an entry as it is now; an empty one if it is not there, or cannot be read: then the error
// of the write says why.
func (k *Registry) stored(ctx context.Context, key string) meta.Entry {
	entry, _ := k.meta.Get(ctx, key)
	return entry
}

// admit wants room for more, if it is any. The tally does not know what other nodes did, so
// before it refuses, and at first, the entries are counted.
func (g group) admit(ctx context.Context, more size) error {
	if more.stored <= 0 && more.bytes <= 0 {
		return nil
	}
	tally := g.k.tally
	room, sure := tally.room(g.Prefix, more)
	if !room && !sure {
		entries, err := g.k.meta.List(ctx, g.Prefix+entryPrefix)
		if err != nil {
			return fmt.Errorf("count entries: %w", err)
		}
		all := size{stored: len(entries)}
		for _, e := range entries {
			all.bytes += len(e.Value)
		}
		tally.set(g.Prefix, all)
		room, _ = tally.room(g.Prefix, more)
	}
	if !room {
		return fmt.Errorf("%w: at most %d of %d bytes together, remove what nobody needs", ErrTooManyEntries, tally.most.stored, tally.most.bytes)
	}
	return nil
}

// Remove deletes an entry on condition of its version.
func (k *Registry) Remove(ctx context.Context, of processor.Group, e processor.Entry) error {
	return k.RemoveBy(ctx, k.itself, of, e)
}

// RemoveBy is Remove for a client. ErrForbidden where the entry is not the client's to remove.
func (k *Registry) RemoveBy(ctx context.Context, by Caller, of processor.Group, e processor.Entry) error {
	if err := checkEntry(groupentry.CheckKey(e.Key)); err != nil {
		return err
	}
	if e.Version == "" {
		return fmt.Errorf("remove entry %q: %w: it has no version", e.Key, ErrInvalid)
	}
	g, err := k.find(ctx, of)
	if err != nil {
		return err
	}
	expected, ok := revisionOf(e.Version)
	if !ok {
		return processor.ErrConflict
	}
	if !by.Operator {
		if err := g.mayChange(ctx, by, actRemove, e, expected); err != nil {
			return err
		}
	}
	key := g.Prefix + entryPrefix + e.Key
	had := k.stored(ctx, key)
	if err := k.meta.Delete(ctx, key, expected); err != nil {
		return entryError("remove", e.Key, err)
	}
	k.tally.add(g.Prefix, size{-1, -len(had.Value)})
	notePresence(ctx, g, e.Key, had, nil)
	return nil
}

func entryError(doing, key string, err error) error {
	if mirror.GoneOrChanged(err) {
		return processor.ErrConflict
	}
	return fmt.Errorf("%s entry %q: %w", doing, key, err)
}

// checkEntry makes the rule's error one of ours.
func checkEntry(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
