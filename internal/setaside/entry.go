package setaside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Codec is the stored form of a value.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON is the codec of values that are stored as encoding/json writes them.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(value T) ([]byte, error) { return json.Marshal(value) },
		Decode: func(stored []byte) (value T, err error) { return value, json.Unmarshal(stored, &value) },
	}
}

// Entry is an entry of the meta store as this process knows it. The zero value is one that does not
// exist. It is never changed, only replaced.
type Entry[T any] struct {
	Value    T
	Revision meta.Revision
}

// Read decodes an entry.
func (c Codec[T]) Read(e meta.Entry) (Entry[T], error) {
	value, err := c.Decode(e.Value)
	if err != nil {
		return Entry[T]{}, fmt.Errorf("read entry %s: %w", e.Key, err)
	}
	return Entry[T]{value, e.Revision}, nil
}

// maxConflicts is how often a change is tried anew. Each conflict means that somebody else's change
// was stored, so that so many are the sign of a store that contradicts itself.
const maxConflicts = 1000

// errConflicts: there were so many.
var errConflicts = errors.New("the entry changed whenever it was to be written: try again")

// Change stores an entry with a change, which how makes to a copy of the value: it replaces lists
// and does not write into them. Neither what others changed meanwhile nor an earlier change whose
// outcome was unknown is overwritten: then how is called again, with what is there.
func (c Codec[T]) Change(ctx context.Context, store meta.Store, key string, from Entry[T], how func(*T)) (Entry[T], error) {
	return c.ChangeUnless(ctx, store, key, from, func(value *T) error {
		how(value)
		return nil
	})
}

// ChangeUnless is Change for a change that may be refused: an error of how's is returned, and nothing
// is stored.
func (c Codec[T]) ChangeUnless(ctx context.Context, store meta.Store, key string, from Entry[T], how func(*T) error) (Entry[T], error) {
	for range maxConflicts {
		next := from.Value
		if err := how(&next); err != nil {
			return from, err
		}
		value, err := c.Encode(next)
		if err != nil {
			return from, err
		}
		revision, err := store.CompareAndSet(ctx, key, from.Revision, value)
		if err == nil {
			return Entry[T]{next, revision}, nil
		}
		if !errors.Is(err, meta.ErrConflict) {
			return from, err
		}
		there, err := store.Get(ctx, key)
		switch {
		case errors.Is(err, meta.ErrNotFound):
			from = Entry[T]{}
		case err != nil:
			return from, err
		default:
			if from, err = c.Read(there); err != nil {
				return from, err
			}
		}
	}
	return from, fmt.Errorf("change entry %s: %w", key, errConflicts)
}

// Remove deletes an entry, whatever its revision.
func Remove(ctx context.Context, store meta.Store, key string) error {
	for range maxConflicts {
		there, err := store.Get(ctx, key)
		if errors.Is(err, meta.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = store.Delete(ctx, key, there.Revision)
		}
		if !errors.Is(err, meta.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("remove entry %s: %w", key, errConflicts)
}
