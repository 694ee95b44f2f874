package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// How long a watch that has ended waits, about, before it begins anew: the first pause, and what it
// grows to while none begins.
const (
	lostPause    = 320 * time.Millisecond
	maxLostPause = 5 * time.Second
)

// Follow watches until ctx ends, and returns nil then. Where watch ends because the watch was lost
// or the store is out of reach, it begins anew after a pause, which grows until a watch has begun;
// warn hears of the first of the errors in a row. Another error ends Follow, which returns it.
// watch calls begun once it has the present state.
func Follow(ctx context.Context, watch func(ctx context.Context, begun func()) error, warn func(error)) error {
	for pause := lostPause; ; pause = min(2*pause, maxLostPause) {
		failed := pause > lostPause
		err := watch(ctx, func() { pause, failed = lostPause, false })
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, meta.ErrWatchLost) && !errors.Is(err, meta.ErrUnavailable):
			return err
		case !failed:
			warn(err)
		}
		sleep.About(ctx, pause)
	}
}

// Run follows what others change, until ctx ends, and returns nil then. A watch that is lost, and
// one that cannot begin because the store is out of reach, begins anew; one that fails otherwise
// ends Run. Without Run the table knows what Load read and what was changed through it.
func (t *Table[T]) Run(ctx context.Context) error {
	err := Follow(ctx, t.follow, func(err error) {
		t.cfg.Log.Warn("a watch of definitions was lost, beginning anew", "definitions", t.cfg.Name, "error", err)
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", t.cfg.Name, err)
	}
	return nil
}

// follow is one watch: it takes over the present state and then every change, until it fails.
func (t *Table[T]) follow(ctx context.Context, begun func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deleted := t.deletions()
	watch, err := t.cfg.Store.Watch(ctx, t.cfg.Prefix)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		changes, err := watch.Next()
		if err != nil {
			return err
		}
		t.apply(t.watched(changes)...)
		if first {
			if err := t.dropMissing(ctx, changes, deleted); err != nil {
				return err
			}
			begun()
		}
	}
}

// watched reads changes. One that cannot be read is left out and logged: the others must not stop
// for it.
func (t *Table[T]) watched(changes []meta.Change) []state[T] {
	news := make([]state[T], 0, len(changes))
	for _, c := range changes {
		s := state[T]{Item: Item[T]{Key: c.Key, Revision: c.Revision}, gone: c.Deleted, watched: true}
		if !c.Deleted {
			var err error
			if s.Value, err = t.cfg.Decode(c.Entry); err != nil {
				t.cfg.Log.Error("a definition was changed to something unreadable, going on with the old one", "definitions", t.cfg.Name, "error", err)
				continue
			}
		}
		news = append(news, s)
	}
	return news
}

// dropMissing forgets what was deleted while nobody watched: the watch begins with what exists and
// says nothing of what no longer does. What we made after the watch's first look is missing there
// too, so each is looked up in the store. Deletions are forgotten that were known before the watch
// began. A later one is remembered: what we made and deleted after the watch's first look it
// has yet to report, and would bring back.
//
// A change of our own that is under way may have been made before somebody else's deletion, and be
// applied after we have dropped its key: it would bring the entry back, and no watch would report
// the deletion any more. So these are waited for. One that begins later and succeeds has created
// its key after the watch's first look, or changed one that was, and the watch reports what
// follows.
func (t *Table[T]) dropMissing(ctx context.Context, present []meta.Change, deleted map[string]meta.Revision) error {
	if err := t.settle(ctx); err != nil {
		return err
	}
	var gone []state[T]
	for _, s := range t.missing(present) {
		if s.gone && s.Revision != deleted[s.Key] {
			continue
		}
		_, err := t.cfg.Store.Get(ctx, s.Key)
		switch {
		case errors.Is(err, meta.ErrNotFound):
			gone = append(gone, s)
		case err != nil:
			return fmt.Errorf("look for %s: %w", s.Key, err)
		}
	}
	t.drop(gone...)
	return nil
}
