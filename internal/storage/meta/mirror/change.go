package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrUnchanged is what a function given to Change returns where the entry is as it should be.
var ErrUnchanged = errors.New("nothing to change")

// Load reads all entries from the store, in one step for Apply. It fails if one cannot be read.
func (t *Table[T]) Load(ctx context.Context) error {
	defer t.begin()()
	items, err := t.List(ctx, t.cfg.Prefix)
	if err != nil {
		return err
	}
	news := make([]state[T], len(items))
	for i, item := range items {
		news[i].Item = item
	}
	t.apply(news...)
	return nil
}

// List reads the entries under a prefix from the store, by key. It changes nothing in the copy.
func (t *Table[T]) List(ctx context.Context, prefix string) ([]Item[T], error) {
	entries, err := t.cfg.Store.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.cfg.Name, err)
	}
	items := make([]Item[T], len(entries))
	for i, e := range entries {
		if items[i], err = t.item(e); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Fresh has List and Read see whatever was stored under the prefix before the call, by whomever;
// see meta.Store. The copy may be older all the same.
func (t *Table[T]) Fresh(ctx context.Context, prefix string) error {
	if err := t.cfg.Store.Fresh(ctx, prefix); err != nil {
		return fmt.Errorf("read %s: %w", t.cfg.Name, err)
	}
	return nil
}

// Read reads an entry from the store, since only its revision is good for a change. It changes
// nothing in the copy. Errors: meta.ErrNotFound, also for what can be no key; Decode's; the
// store's.
func (t *Table[T]) Read(ctx context.Context, key string) (Item[T], error) {
	if meta.CheckKey(key) != nil {
		return Item[T]{}, meta.ErrNotFound
	}
	entry, err := t.cfg.Store.Get(ctx, key)
	if err != nil {
		return Item[T]{}, err
	}
	return t.item(entry)
}

// Refresh takes an entry into use as the store has it now, be the watch late. Errors as for Read; a
// key that is not there changes nothing.
func (t *Table[T]) Refresh(ctx context.Context, key string) error {
	defer t.begin()()
	item, err := t.Read(ctx, key)
	if err != nil {
		return err
	}
	t.apply(state[T]{Item: item})
	return nil
}

func (t *Table[T]) item(e meta.Entry) (Item[T], error) {
	value, err := t.cfg.Decode(e)
	return Item[T]{Key: e.Key, Revision: e.Revision, Value: value}, err
}

// Put stores an entry and takes it into use, if the key's revision is still the item's; zero means
// that there is none. It gives the item that is in use then, read from what was stored, so that it
// shares nothing with the caller's. Errors are the store's, meta.ErrConflict among them.
func (t *Table[T]) Put(ctx context.Context, item Item[T]) (Item[T], error) {
	defer t.begin()()
	entry := meta.Entry{Key: item.Key, Value: t.cfg.Encode(item.Value)}
	before, _ := t.Get(item.Key)
	var err error
	if entry.Revision, err = t.cfg.Store.CompareAndSet(ctx, entry.Key, item.Revision, entry.Value); err != nil {
		return Item[T]{}, err
	}
	stored, err := t.item(entry)
	if err != nil {
		return Item[T]{}, err
	}
	t.apply(state[T]{Item: stored})
	t.cfg.Made(ctx, Update[T]{Key: item.Key, Old: before, New: stored})
	return stored, nil
}

// Change reads an entry, lets it be changed and stores it, again if somebody else was faster. Where
// how returns ErrUnchanged nothing is stored, and the entry is given as how left it; the copy has it
// by then, also where another process has stored it and the watch has not reported it yet. Its other
// errors are given back. So are Read's and Put's.
func (t *Table[T]) Change(ctx context.Context, key string, how func(*T) error) (changed Item[T], err error) {
	err = Uncontested(ctx, func() (err error) {
		if changed, err = t.Read(ctx, key); err != nil {
			return err
		}
		if err = how(&changed.Value); err == nil {
			changed, err = t.Put(ctx, changed)
		}
		return err
	})
	if errors.Is(err, ErrUnchanged) {
		err = t.learn(ctx, changed)
	}
	if err != nil {
		return Item[T]{}, err
	}
	return changed, nil
}

// learn takes an entry into the copy that was read, if it is news. It is read once more: whoever was
// given it may have changed it.
func (t *Table[T]) learn(ctx context.Context, item Item[T]) error {
	if t.revision(item.Key) >= item.Revision {
		return nil
	}
	defer t.begin()()
	again, err := t.Read(ctx, item.Key)
	if errors.Is(err, meta.ErrNotFound) {
		return nil // it has gone since, which the watch reports
	}
	if err == nil {
		t.apply(state[T]{Item: again})
	}
	return err
}

// Delete removes an entry, if its revision is still the item's. Errors are the store's:
// meta.ErrNotFound where it is gone, meta.ErrConflict where it is another.
func (t *Table[T]) Delete(ctx context.Context, item Item[T]) error {
	defer t.begin()()
	if err := t.cfg.Store.Delete(ctx, item.Key, item.Revision); err != nil {
		return err
	}
	t.apply(deleted(item))
	t.cfg.Made(ctx, Update[T]{Key: item.Key, Old: item})
	return nil
}

// Remove reads an entry and deletes it, again if somebody else was faster. Errors are those of Read
// and Delete.
func (t *Table[T]) Remove(ctx context.Context, key string) error {
	return Uncontested(ctx, func() error {
		there, err := t.Read(ctx, key)
		if err != nil {
			return err
		}
		return t.Delete(ctx, there)
	})
}

// deletions is how many DeleteAll has under way at once: they share the store's syncs.
const deletions = 64

// DeleteAll removes entries that are as the items say; those that have changed since, or are gone,
// are left to whoever did that. Apply hears of them in one call. Where some cannot be deleted the
// first of these errors is returned, and what had not begun by then is left.
func (t *Table[T]) DeleteAll(ctx context.Context, items []Item[T]) error {
	defer t.begin()()
	going, stop := context.WithCancelCause(ctx) // what has begun goes on, or nobody would know its outcome
	defer stop(nil)
	done := make([]bool, len(items))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(deletions, len(items)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)) && going.Err() == nil; i = next.Add(1) - 1 {
				err := t.cfg.Store.Delete(ctx, items[i].Key, items[i].Revision)
				if done[i] = err == nil; !done[i] && !GoneOrChanged(err) {
					stop(fmt.Errorf("delete %s: %w", items[i].Key, err))
				}
			}
		})
	}
	workers.Wait()
	var gone []state[T]
	for i, item := range items {
		if done[i] {
			gone = append(gone, deleted(item))
		}
	}
	t.apply(gone...)
	for i, item := range items {
		if done[i] {
			t.cfg.Made(ctx, Update[T]{Key: item.Key, Old: item})
		}
	}
	return context.Cause(going)
}

// Forget takes note that an entry is no longer what the item says, nor what it was before: a change
// has met another, which the watch will report. Until then there is none, as far as this process
// knows.
func (t *Table[T]) Forget(item Item[T]) {
	defer t.begin()()
	if there, ok := t.Get(item.Key); ok && there.Revision <= item.Revision {
		t.apply(deleted(item))
	}
}

// GoneOrChanged tells whether a change met somebody else's: nothing was changed by it.
func GoneOrChanged(err error) bool {
	return errors.Is(err, meta.ErrNotFound) || errors.Is(err, meta.ErrConflict)
}

// How often a change begins anew because somebody else was faster, and how long it pauses before
// that. Together it is a few seconds: tries without a pause would all be spent while the other one,
// or a replicated store, is still at it.
const (
	MaxTries   = 16
	firstPause = 5 * time.Millisecond
	maxPause   = 320 * time.Millisecond
)

// Uncontested makes a change again and again until it ends in something else than meta.ErrConflict,
// or has been tried often enough. It is for changes of more than one step; Change does so by
// itself.
func Uncontested(ctx context.Context, change func() error) (err error) {
	for try := range MaxTries {
		if err = change(); !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if sleep.About(ctx, min(firstPause<<try, maxPause)) != nil {
			break
		}
	}
	// Also where ctx has ended: its own error would say that the outcome is unknown, and after a
	// conflict nothing was changed.
	return fmt.Errorf("others keep changing it: %w", err)
}
