package topics

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// How often a change begins anew because somebody else was faster, and how long it pauses
// before that: as the broker does.
const (
	maxTries   = 16
	firstPause = 5 * time.Millisecond
	maxPause   = 320 * time.Millisecond
)

// finishTimeout bounds what goes on although the caller has left.
const finishTimeout = time.Minute

// detached is for what has been decided: it does not depend on the patience of a client.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
}

// untilUncontested makes a change again and again until it ends in something else than a
// conflict.
func untilUncontested(ctx context.Context, change func() error) error {
	for try := range maxTries {
		if err := change(); !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if !pause(ctx, min(firstPause<<try, maxPause)) {
			break
		}
	}
	// Also where ctx has ended: its own error would say that the outcome is unknown, and after
	// a conflict nothing was changed.
	return fmt.Errorf("others keep changing it: %w", meta.ErrConflict)
}

// pause waits for about that long, so that those who met do not meet again. False means that
// ctx has ended.
func pause(ctx context.Context, about time.Duration) bool {
	timer := time.NewTimer(about/2 + rand.N(about/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// put stores an entry and takes it into use, if its revision is still that; zero means a new one.
// What is taken into use is read from what was stored, so that it shares nothing with the caller.
func (k *Registry) put(ctx context.Context, f entry, expected meta.Revision) (sighting, error) {
	entry := meta.Entry{Key: f.key(), Value: encode(f)}
	k.known.begin()
	defer k.known.end()
	var err error
	if entry.Revision, err = k.meta.CompareAndSet(ctx, entry.Key, expected, entry.Value); err != nil {
		return sighting{}, err
	}
	s, err := k.sighted(entry)
	if err != nil {
		return sighting{}, err
	}
	k.known.apply(s)
	return s, nil
}

// get asks the store, since only its revision is good for a change.
func (k *Registry) get(ctx context.Context, key string) (sighting, error) {
	if meta.CheckKey(key) != nil {
		return sighting{}, meta.ErrNotFound // nothing has such a name
	}
	entry, err := k.meta.Get(ctx, key)
	if err != nil {
		return sighting{}, err
	}
	return k.sighted(entry)
}

// remove deletes an entry, if its revision is still that.
func (k *Registry) remove(ctx context.Context, s sighting) error {
	k.known.begin()
	defer k.known.end()
	if err := k.meta.Delete(ctx, s.key, s.revision); err != nil {
		return err
	}
	k.known.apply(sighting{key: s.key, revision: s.revision, gone: true})
	return nil
}

// removals is how many deletions are under way at once: they share the store's syncs.
const removals = 64

// removeAll deletes entries that are as they were seen; those that have changed since, or are
// gone, are left to whoever did that. Readers see it in one step. Where some cannot be deleted,
// the first of these errors is told, and what had not begun by then is left.
func (k *Registry) removeAll(ctx context.Context, entries []sighting) error {
	k.known.begin()
	defer k.known.end()
	going, stop := context.WithCancelCause(ctx) // what has begun goes on, or nobody would know its outcome
	defer stop(nil)
	errs := make([]error, len(entries))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(removals, len(entries)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(entries)); i = next.Add(1) - 1 {
				if errs[i] = context.Cause(going); errs[i] == nil {
					errs[i] = k.meta.Delete(ctx, entries[i].key, entries[i].revision)
				}
				if errs[i] != nil && !goneOrChanged(errs[i]) {
					stop(fmt.Errorf("delete %s: %w", entries[i].key, errs[i]))
				}
			}
		})
	}
	workers.Wait()
	k.known.apply(deleted(entries, errs)...)
	return context.Cause(going)
}

// deleted gives those of the entries that were.
func deleted(entries []sighting, errs []error) []sighting {
	gone := make([]sighting, 0, len(entries))
	for i, s := range entries {
		if errs[i] == nil {
			gone = append(gone, sighting{key: s.key, revision: s.revision, gone: true})
		}
	}
	return gone
}

func goneOrChanged(err error) bool {
	return errors.Is(err, meta.ErrNotFound) || errors.Is(err, meta.ErrConflict)
}

// errUnchanged says that a definition is as it should be.
var errUnchanged = errors.New("nothing to change")

// change reads a subscription and lets it be changed, again if somebody else was faster. Errors
// of the store are passed on, meta.ErrNotFound among them. how may say errUnchanged.
func (k *Registry) change(ctx context.Context, key string, how func(*record) error) (*record, error) {
	var changed *record
	err := untilUncontested(ctx, func() error {
		there, err := k.get(ctx, key)
		if err != nil {
			return err
		}
		changed = there.sub
		if err := how(there.sub); err != nil {
			return err
		}
		stored, err := k.put(ctx, there.sub, there.revision)
		changed = stored.sub
		return err
	})
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return changed, nil
}
