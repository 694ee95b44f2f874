package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// entry is a value in the meta store. It is never changed, only replaced.
type entry[T any] struct {
	value    T
	revision meta.Revision // zero: it is not there
}

// readEntry reads what the store has.
func readEntry[T any](e meta.Entry) (f entry[T], err error) {
	if err := json.Unmarshal(e.Value, &f.value); err != nil {
		return f, fmt.Errorf("read entry %s: %w", e.Key, err)
	}
	f.revision = e.Revision
	return f, nil
}

// change gives the entry as it is after a change, which how makes to a copy: it replaces lists and
// does not write into them. Whoever else made one meanwhile, or an earlier one whose outcome was
// unknown, is not overwritten.
func (f entry[T]) change(ctx context.Context, store meta.Store, key string, how func(*T)) (entry[T], error) {
	for {
		next := f.value
		how(&next)
		value, err := json.Marshal(next)
		if err != nil {
			return f, err
		}
		revision, err := store.CompareAndSet(ctx, key, f.revision, value)
		if err == nil {
			return entry[T]{next, revision}, nil
		}
		if !errors.Is(err, meta.ErrConflict) {
			return f, fmt.Errorf("note what became of dead letters: %w", err)
		}
		if f, err = reread[T](ctx, store, key); err != nil {
			return f, err
		}
	}
}

// remove deletes the entry, whatever it is by now.
func (f entry[T]) remove(ctx context.Context, store meta.Store, key string) error {
	for f.revision != 0 {
		err := store.Delete(ctx, key, f.revision)
		if err == nil {
			return nil
		}
		if !errors.Is(err, meta.ErrConflict) {
			return fmt.Errorf("forget what became of dead letters: %w", err)
		}
		if f, err = reread[T](ctx, store, key); err != nil {
			return err
		}
	}
	return nil
}

func reread[T any](ctx context.Context, store meta.Store, key string) (entry[T], error) {
	e, err := store.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return entry[T]{}, nil
	}
	if err != nil {
		return entry[T]{}, fmt.Errorf("read what became of dead letters: %w", err)
	}
	return readEntry[T](e)
}
