package bolt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/meta"
)

// board knows the running watches. Its zero value is ready.
type board struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{} // guarded by mu
	cleared  bool                  // guarded by mu; nobody is added any more
}

// add puts a watcher up until its context ends. The end is noticed without the
// watcher's help, for its reader may never ask again.
func (b *board) add(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cleared {
		return
	}
	if b.watchers == nil {
		b.watchers = make(map[*watcher]struct{})
	}
	// Beneath the lock, so that an end that has come already finds the watcher there.
	b.watchers[w] = struct{}{}
	w.stop = context.AfterFunc(w.ctx, func() { b.remove(w) })
}

func (b *board) remove(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, up := b.watchers[w]; up {
		delete(b.watchers, w)
		w.stop()
	}
}

func (b *board) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers {
		w.stop()
	}
	b.watchers, b.cleared = nil, true
}

// tell hands changes to all watchers. It is called in the order of the commits and
// never waits for a reader.
func (b *board) tell(changes []meta.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watchers {
		w.note(changes)
	}
}

// Watch begins a watch.
func (s *Store) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	if err := meta.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &watcher{store: s, ctx: ctx, prefix: prefix, ready: make(chan struct{}, 1), pending: make(map[string]meta.Change)}
	if err := w.ended(); err != nil {
		return nil, err
	}
	return w, nil
}

// watcher is one watch. Until its first answer it costs nothing; from then on it
// notes the newest change of each key until they are asked for.
type watcher struct {
	store  *Store
	ctx    context.Context // the watch's life; meta.Watcher has Next without one
	prefix string
	ready  chan struct{} // has a token when pending may have something

	begun bool        // used by the reader only
	stop  func() bool // guarded by board.mu; ends the waiting for ctx's end

	mu      sync.Mutex
	after   meta.Revision          // guarded by mu; what happened up to it was told at first
	pending map[string]meta.Change // guarded by mu; by key
}

// Next waits for something to tell.
func (w *watcher) Next() ([]meta.Change, error) {
	if err := w.ended(); err != nil {
		return nil, err
	}
	if !w.begun {
		return w.begin()
	}
	for {
		select {
		case <-w.ctx.Done():
			return nil, w.ended()
		case <-w.store.closed:
			return nil, w.ended()
		case <-w.ready:
			if changes := w.take(); len(changes) > 0 {
				return changes, nil
			}
		}
	}
}

// ended gives the error with which the watch has ended, if it has.
func (w *watcher) ended() error {
	if err := w.ctx.Err(); err != nil {
		return fmt.Errorf("watch %q: %w", w.prefix, err)
	}
	select {
	case <-w.store.closed:
		return fmt.Errorf("watch %q: %w", w.prefix, meta.ErrClosed)
	default:
		return nil
	}
}

// begin gives the present state. Changes are noted from before it is read, so that
// none is missed; those that the state has in it already are dropped again.
func (w *watcher) begin() ([]meta.Change, error) {
	w.store.board.add(w)
	entries, at, err := w.store.list(w.ctx, w.prefix)
	if err != nil {
		w.store.board.remove(w)
		return nil, fmt.Errorf("watch %q: %w", w.prefix, err)
	}
	w.forget(at)
	w.begun = true
	changes := make([]meta.Change, len(entries))
	for i, entry := range entries {
		changes[i] = meta.Change{Entry: entry}
	}
	return changes, nil
}

// note keeps the newest change of each key. The writer calls it, so it does not wait.
func (w *watcher) note(changes []meta.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		if c.Revision > w.after && strings.HasPrefix(c.Key, w.prefix) {
			w.pending[c.Key] = c
		}
	}
	if len(w.pending) == 0 {
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// forget drops what happened up to a revision, also where it is yet to be noted: a
// change can be read a moment before the watchers are told.
func (w *watcher) forget(upTo meta.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = upTo
	for key, c := range w.pending {
		if c.Revision <= upTo {
			delete(w.pending, key)
		}
	}
}

// take gives all that was noted, oldest first, in bytes of the reader's own.
func (w *watcher) take() []meta.Change {
	w.mu.Lock()
	pending := w.pending
	w.pending = make(map[string]meta.Change)
	w.mu.Unlock()
	changes := make([]meta.Change, 0, len(pending))
	for _, c := range pending {
		c.Value = bytes.Clone(c.Value)
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b meta.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return changes
}
