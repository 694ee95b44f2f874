package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Entries reads the entries whose key begins with prefix.
func (k *Registry) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if err := checkEntry(groupentry.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return nil, err
	}
	dated, err := k.stored(ctx, at, prefix)
	if err != nil {
		return nil, err
	}
	stored := make([]processor.Entry, len(dated))
	for i, d := range dated {
		stored[i] = processor.Entry{Key: d.key, Value: d.Value, Version: versionOf(d.revision)}
	}
	return stored, nil
}

// datedEntry is an entry with the time at which it was put.
type datedEntry struct {
	entryRecord
	key      string
	revision meta.Revision
}

func (k *Registry) stored(ctx context.Context, at location, prefix string) ([]datedEntry, error) {
	entries, err := k.meta.List(ctx, at.entry(prefix))
	if err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	stored := make([]datedEntry, len(entries))
	for i, e := range entries {
		record, err := decode[entryRecord](e)
		if err != nil {
			return nil, err
		}
		stored[i] = datedEntry{record, strings.TrimPrefix(e.Key, at.stored()), e.Revision}
	}
	return stored, nil
}

// Put stores an entry on condition of its version. ErrTooManyFacts where a new one would be
// one too many, or they would measure too much together.
func (k *Registry) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if err := checkEntry(groupentry.Check(f.Key, f.Value)); err != nil {
		return processor.Entry{}, err
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return processor.Entry{}, err
	}
	expected, ok := revisionOf(f.Version)
	if !ok {
		return processor.Entry{}, processor.ErrConflict
	}
	record := encode(entryRecord{V: recordVersion, Put: now(), Value: f.Value})
	more := size{1, len(record)}
	if expected != 0 {
		more = size{0, len(record) - k.entryBytes(ctx, at, f.Key)}
	}
	if err := k.admit(ctx, at, more); err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %q: %w", f.Key, err)
	}
	if f.Version, err = k.put(ctx, at, f.Key, record, expected); err != nil {
		return processor.Entry{}, err
	}
	k.tally.add(at.Prefix, more)
	return f, nil
}

func (k *Registry) put(ctx context.Context, at location, key string, record []byte, expected meta.Revision) (processor.Version, error) {
	revision, err := k.meta.CompareAndSet(ctx, at.entry(key), expected, record)
	if err != nil {
		return "", k.entryError("put", key, err)
	}
	if expected == 0 {
		err = k.settle(ctx, at, created{at.entry(key), revision})
	}
	return versionOf(revision), err
}

// entryBytes is what an entry measures now; 0 if it is not there, or cannot be read: then the
// write tells why.
func (k *Registry) entryBytes(ctx context.Context, at location, key string) int {
	entry, _ := k.meta.Get(ctx, at.entry(key))
	return len(entry.Value)
}

// admit wants room for more, if it is any. The tally does not know what other nodes did, so
// before it refuses, and at first, the entries are counted.
func (k *Registry) admit(ctx context.Context, at location, more size) error {
	if more.stored <= 0 && more.bytes <= 0 {
		return nil
	}
	room, sure := k.tally.room(at.Prefix, more)
	if !room && !sure {
		entries, err := k.meta.List(ctx, at.stored())
		if err != nil {
			return fmt.Errorf("count entries: %w", err)
		}
		all := size{stored: len(entries)}
		for _, e := range entries {
			all.bytes += len(e.Value)
		}
		k.tally.set(at.Prefix, all)
		room, _ = k.tally.room(at.Prefix, more)
	}
	if !room {
		return fmt.Errorf("%w: at most %d of %d bytes together, remove what nobody needs", ErrTooManyEntries, k.tally.most.stored, k.tally.most.bytes)
	}
	return nil
}

// Remove deletes an entry on condition of its version.
func (k *Registry) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if err := checkEntry(groupentry.CheckKey(f.Key)); err != nil {
		return err
	}
	if f.Version == "" {
		return fmt.Errorf("remove entry %q: %w: it has no version", f.Key, ErrInvalid)
	}
	at, err := k.find(ctx, g)
	if err != nil {
		return err
	}
	expected, ok := revisionOf(f.Version)
	if !ok {
		return processor.ErrConflict
	}
	had := k.entryBytes(ctx, at, f.Key)
	if err := k.meta.Delete(ctx, at.entry(f.Key), expected); err != nil {
		return k.entryError("remove", f.Key, err)
	}
	k.tally.add(at.Prefix, size{-1, -had})
	return nil
}

func (k *Registry) entryError(doing, key string, err error) error {
	if errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) {
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
