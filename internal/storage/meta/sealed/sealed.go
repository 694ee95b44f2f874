// Package sealed is a meta.Store that encrypts the values of another. A copy of the files without
// the secret key gives nobody an access key, a signing key, a password or a header.
package sealed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// plain are the prefixes of entries that hold no secret and stay as they are: most change all the
// time. What is not named here is sealed, so that a new kind of entry is safe unless somebody has
// decided that it need not be.
var plain = []string{
	"hubs/", "groups/", "logs/", "producers/", "records/", "blobs/",
	"grid/cursors/", "grid/dead/", "poison/", "nodes/", "brokers/", "places/", "holds/",
	"kafka/groups/", "kafka/offsets/", "kafka/staged/", "kafka/transactions/",
}

// Store seals what is written and opens what is read. Values that are not sealed, from before there
// was a key, are read as they are.
type Store struct {
	meta.Store
	keys *Keys
}

// New wraps a store.
func New(inner meta.Store, keys *Keys) *Store { return &Store{inner, keys} }

func isPlain(key string) bool {
	return slices.ContainsFunc(plain, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Get opens the value.
func (s *Store) Get(ctx context.Context, key string) (meta.Entry, error) {
	e, err := s.Store.Get(ctx, key)
	if err != nil {
		return e, err
	}
	e.Value, _, err = s.keys.Open(key, e.Value)
	return e, err
}

// List opens all values.
func (s *Store) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	list, err := s.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		if list[i].Value, _, err = s.keys.Open(e.Key, e.Value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Keys are not sealed.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	return meta.Keys(ctx, s.Store, prefix)
}

// CompareAndSet seals the value, unless it is of a kind that holds no secret.
func (s *Store) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if !isPlain(key) {
		value = s.keys.Seal(key, value)
	}
	return s.Store.CompareAndSet(ctx, key, expected, value)
}

// Watch opens the values of changes.
func (s *Store) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	return s.WatchSome(ctx, prefix, nil)
}

// WatchSome is Watch of those keys that are wanted, where the store below can select them; nil: of all.
func (s *Store) WatchSome(ctx context.Context, prefix string, wants func(key string) bool) (w meta.Watcher, err error) {
	if wants == nil {
		w, err = s.Store.Watch(ctx, prefix)
	} else {
		w, err = meta.WatchSome(ctx, s.Store, prefix, wants)
	}
	if err != nil {
		return nil, err
	}
	return &watcher{w, s.keys}, nil
}

type watcher struct {
	meta.Watcher
	keys *Keys
}

func (w *watcher) Next() ([]meta.Change, error) {
	changes, err := w.Watcher.Next()
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		if c.Deleted {
			continue
		}
		if changes[i].Value, _, err = w.keys.Open(c.Key, c.Value); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// compactKey is the key of an entry that is there from before values are sealed anew until the
// store's file was rewritten, also where a crash comes between.
const compactKey = "storage/compact"

// Reseal seals with the newest key what is not sealed with it, and counts these entries. due: the
// file is to be rewritten, as its free pages hold values as they were before; Compacted is to be
// called then. It is for the start, before anybody else uses the store; what another node changes
// meanwhile is sealed by that.
func (s *Store) Reseal(ctx context.Context) (entries int, due bool, err error) {
	list, err := s.Store.List(ctx, "")
	if err != nil {
		return 0, false, err
	}
	due = slices.ContainsFunc(list, func(e meta.Entry) bool { return e.Key == compactKey })
	for _, e := range list {
		value, newest, err := s.keys.Open(e.Key, e.Value)
		if err != nil {
			return entries, due, err
		}
		if newest || isPlain(e.Key) && !isSealed(e.Value) || len(value)+s.keys.Overhead() > meta.MaxValueBytes {
			continue
		}
		if !due {
			if _, err := s.CompareAndSet(ctx, compactKey, 0, []byte("{}")); err != nil && !errors.Is(err, meta.ErrConflict) {
				return 0, false, fmt.Errorf("seal secrets: %w", err)
			}
			due = true
		}
		if _, err := s.CompareAndSet(ctx, e.Key, e.Revision, value); err != nil && !errors.Is(err, meta.ErrConflict) {
			return entries, due, fmt.Errorf("seal %s: %w", e.Key, err)
		}
		entries++
	}
	return entries, due, nil
}

// Compacted notes that the file was rewritten.
func (s *Store) Compacted(ctx context.Context) error {
	e, err := s.Get(ctx, compactKey)
	if err == nil {
		err = s.Delete(ctx, compactKey, e.Revision)
	}
	return err
}

// Some tells whether anything in a store is sealed.
func Some(ctx context.Context, inner meta.Store) (bool, error) {
	list, err := inner.List(ctx, "")
	return slices.ContainsFunc(list, func(e meta.Entry) bool { return isSealed(e.Value) }), err
}
