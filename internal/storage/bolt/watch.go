package bolt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// board knows the running watches. Its zero value is ready.
type board struct {
	mu sync.Mutex
	// watchers are kept by their prefix, and how many prefixes there are of each length: a thousand
	// functions watch two thousand groups, and a change in one of them concerns two.
	watchers map[string]map[*watcher]struct{} // guarded by mu
	lengths  map[int]int                      // guarded by mu
	cleared  bool                             // guarded by mu; nobody is added any more
}

// add puts a watcher up until its context ends. The end is noticed without the
// watcher's help, for its reader may never call again.
func (b *board) add(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cleared {
		return
	}
	if b.watchers == nil {
		b.watchers, b.lengths = map[string]map[*watcher]struct{}{}, map[int]int{}
	}
	alike := b.watchers[w.prefix]
	if alike == nil {
		alike = map[*watcher]struct{}{}
		b.watchers[w.prefix] = alike
		b.lengths[len(w.prefix)]++
	}
	// Beneath the lock, so that an end that has come already finds the watcher there.
	alike[w] = struct{}{}
	w.stop = context.AfterFunc(w.ctx, func() { b.remove(w) })
}

func (b *board) remove(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alike := b.watchers[w.prefix]
	if _, up := alike[w]; !up {
		return
	}
	w.stop()
	if delete(alike, w); len(alike) > 0 {
		return
	}
	delete(b.watchers, w.prefix)
	if b.lengths[len(w.prefix)]--; b.lengths[len(w.prefix)] == 0 {
		delete(b.lengths, len(w.prefix))
	}
}

func (b *board) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, alike := range b.watchers {
		for w := range alike {
			w.stop()
		}
	}
	b.watchers, b.lengths, b.cleared = nil, nil, true
}

// notify hands changes to the watchers that they concern. It is called in the order of the
// commits and never waits for a reader.
func (b *board) notify(changes []meta.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		for n := range b.lengths {
			if n > len(c.Key) {
				continue
			}
			for w := range b.watchers[c.Key[:n]] {
				w.note(c)
			}
		}
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
	after   meta.Revision          // guarded by mu; what happened up to it was reported at first
	pending map[string]meta.Change // guarded by mu; by key
}

// Next waits for something to report.
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
	w.mu.Lock()
	w.after = at // also what is yet to be noted: a change can be read a moment before watchers are notified
	maps.DeleteFunc(w.pending, func(_ string, c meta.Change) bool { return c.Revision <= at })
	w.mu.Unlock()
	w.begun = true
	changes := make([]meta.Change, len(entries))
	for i, entry := range entries {
		changes[i] = meta.Change{Entry: entry}
	}
	return changes, nil
}

// note keeps a change, the newest of each key. The writer calls it, so it does not wait.
func (w *watcher) note(c meta.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Revision <= w.after {
		return
	}
	w.pending[c.Key] = c
	select {
	case w.ready <- struct{}{}:
	default:
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
