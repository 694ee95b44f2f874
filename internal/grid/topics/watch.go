package topics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// lostPause is how long to wait before a watch that was lost begins anew.
const lostPause = 250 * time.Millisecond

// Run follows what other nodes change, gives up handshakes whose time is over, and ends
// subscriptions that expire, until ctx ends, and returns nil then.
func (k *Registry) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	for _, prefix := range []string{topicsPrefix, subscriptionsPrefix} {
		parts.Go(func() {
			if err := k.follow(ctx, prefix); err != nil {
				stop(err)
			}
		})
	}
	parts.Go(func() { k.keepTime(ctx) })
	parts.Wait()
	if err := context.Cause(ctx); errors.Is(err, errFollow) {
		return err
	}
	return nil
}

var errFollow = errors.New("watch definitions")

// follow watches entries until ctx ends.
func (k *Registry) follow(ctx context.Context, prefix string) error {
	for {
		err := k.watch(ctx, prefix)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, meta.ErrWatchLost):
			return fmt.Errorf("%w under %s: %w", errFollow, prefix, err)
		}
		k.log.Warn("watch of the grid's definitions was lost, beginning anew", "prefix", prefix, "error", err)
		if !pause(ctx, lostPause) {
			return nil
		}
	}
}

// watch takes over the present state and then every change, until it fails.
func (k *Registry) watch(ctx context.Context, prefix string) error {
	watch, err := k.meta.Watch(ctx, prefix)
	if err != nil {
		return err
	}
	present, err := watch.Next()
	if err != nil {
		return err
	}
	k.known.apply(k.watched(present)...)
	if err := k.dropMissing(ctx, prefix, present); err != nil {
		return err
	}
	for {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		k.known.apply(k.watched(changes)...)
	}
}

// watched reads changes. One that cannot be read is left out and reported: the others must not
// stop for it.
func (k *Registry) watched(changes []meta.Change) []sighting {
	news := make([]sighting, 0, len(changes))
	for _, c := range changes {
		s := sighting{key: c.Key, revision: c.Revision, gone: c.Deleted}
		if !c.Deleted {
			var err error
			if s, err = k.sighted(c.Entry); err != nil {
				k.log.Error("a definition was changed to something unreadable, going on with the old one", "error", err)
				continue
			}
		}
		s.watched = true
		news = append(news, s)
	}
	return news
}

// dropMissing forgets what was deleted while nobody watched: the watch begins with what exists
// and says nothing of what no longer does. What we made after the watch's first look is missing
// there too, so the store is asked about each.
func (k *Registry) dropMissing(ctx context.Context, prefix string, present []meta.Change) error {
	there := make(map[string]bool, len(present))
	for _, c := range present {
		there[c.Key] = true
	}
	missing := k.known.known(func(key string) bool { return strings.HasPrefix(key, prefix) && !there[key] })
	var gone []sighting
	for _, s := range missing {
		_, err := k.meta.Get(ctx, s.key)
		switch {
		case errors.Is(err, meta.ErrNotFound):
			gone = append(gone, s)
		case err != nil:
			return fmt.Errorf("look for %s: %w", s.key, err)
		}
	}
	k.known.drop(gone)
	return nil
}
