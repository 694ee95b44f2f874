package delivery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// A yard on one machine has one value of cursors for each partition, one of several nodes one for each
// partition and shard. DivideCursors makes the second of the first, UniteCursors the reverse, for a yard
// that is moved. Nobody else uses the store. They may be called again after an error.

// DivideCursors stores the cursors of one machine as those of the shards.
func DivideCursors(ctx context.Context, store meta.Store) error {
	return moveCursors(ctx, store, 2, func(position, subscription string) string {
		return cursorPrefix + shards.Held{Shard: shards.Of(subscription)}.Name() + "/" + position
	})
}

// UniteCursors stores the cursors of all shards as those of one machine.
func UniteCursors(ctx context.Context, store meta.Store) error {
	return moveCursors(ctx, store, 3, func(position, _ string) string { return cursorPrefix + position })
}

// moveCursors moves marks of values whose keys have so many segments behind the prefix to the keys that
// to gives for a position (SOURCE/PARTITION) and a subscription. New values come first: a mark
// that is there twice is the same both times.
func moveCursors(ctx context.Context, store meta.Store, segments int, to func(position, subscription string) string) error {
	entries, err := store.List(ctx, cursorPrefix)
	if err != nil {
		return err
	}
	values := map[string]saved{}
	var old []meta.Entry
	for _, e := range entries {
		parts := strings.Split(strings.TrimPrefix(e.Key, cursorPrefix), "/")
		if _, err := strconv.Atoi(parts[len(parts)-1]); err != nil || len(parts) != segments {
			continue
		}
		_, marks, err := parseCursors(e.Value)
		if err != nil {
			return fmt.Errorf("read the cursors of subscriptions at %s: %w", e.Key, err)
		}
		old = append(old, e)
		for id, mark := range marks {
			key := to(strings.Join(parts[segments-2:], "/"), id)
			if values[key] == nil {
				values[key] = saved{}
			}
			values[key][id] = mark
		}
	}
	for key, marks := range values {
		value := beginCursors(0, len(marks))
		for id, mark := range marks {
			value = appendCursor(value, id, mark)
		}
		if err := replace(ctx, store, key, value); err != nil {
			return err
		}
	}
	for _, e := range old {
		if err := store.Delete(ctx, e.Key, e.Revision); err != nil {
			return err
		}
	}
	return nil
}

// replace stores a value whatever is there.
func replace(ctx context.Context, store meta.Store, key string, value []byte) error {
	found, err := store.Get(ctx, key)
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	_, err = store.CompareAndSet(ctx, key, found.Revision, value)
	return err
}
