package metatest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Memory is a meta.Store without files, so that several of its users can share one and
// run under a fake clock. It is for tests.
type Memory struct {
	mu       sync.Mutex
	changed  sync.Cond              // of mu
	entries  map[string]meta.Change // newest state of each key ever used; guarded by mu
	revision meta.Revision          // guarded by mu

	manner manner
	before map[string]meta.Change // entries without the last change, where manner needs it; guarded by mu
	lags   bool                   // the next Get reads from before; guarded by mu
}

// manner is how a store differs from the plainest one, for the tests of the suite itself.
type manner struct {
	// What the contract leaves to a store.
	FixesStateAtWatch    bool // and not at the first Next
	NotifiesOldDeletions bool // in the present state

	// What it forbids.
	TakesDeletionRevision bool // for that of a value
	LagsAfterConflict     bool // the next read does not show what conflicted
	LagsAtWatch           bool // the present state lacks the newest change
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	s := &Memory{entries: make(map[string]meta.Change)}
	s.changed.L = &s.mu
	return s
}

// Get reads one entry; see meta.Store, as for all methods.
func (s *Memory) Get(ctx context.Context, key string) (meta.Entry, error) {
	if err := errors.Join(ctx.Err(), meta.CheckKey(key)); err != nil {
		return meta.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.entries
	if s.lags {
		entries, s.lags = s.before, false
	}
	entry, ok := entries[key]
	if !ok || entry.Deleted {
		return meta.Entry{}, meta.ErrNotFound
	}
	return copyOf(entry.Entry), nil
}

func copyOf(e meta.Entry) meta.Entry {
	e.Value = bytes.Clone(e.Value)
	return e
}

// List reads all entries under a prefix.
func (s *Memory) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if err := errors.Join(ctx.Err(), meta.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []meta.Entry
	for key, entry := range s.entries {
		if strings.HasPrefix(key, prefix) && !entry.Deleted {
			entries = append(entries, copyOf(entry.Entry))
		}
	}
	slices.SortFunc(entries, func(x, y meta.Entry) int { return strings.Compare(x.Key, y.Key) })
	return entries, nil
}

// Fresh has nothing to wait for: everybody reads the same entries.
func (s *Memory) Fresh(ctx context.Context, prefix string) error {
	return errors.Join(ctx.Err(), meta.CheckPrefix(prefix))
}

// CompareAndSet stores a value if the key's revision is the expected one.
func (s *Memory) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if err := errors.Join(meta.CheckKey(key), meta.CheckValue(value)); err != nil {
		return 0, err
	}
	return s.change(ctx, meta.Change{Entry: meta.Entry{Key: key, Value: bytes.Clone(value)}}, expected)
}

// Delete removes a key if its revision is the expected one.
func (s *Memory) Delete(ctx context.Context, key string, expected meta.Revision) error {
	if err := meta.CheckKey(key); err != nil {
		return err
	}
	if expected == 0 {
		return meta.ErrInvalid
	}
	_, err := s.change(ctx, meta.Change{Entry: meta.Entry{Key: key}, Deleted: true}, expected)
	return err
}

func (s *Memory) change(ctx context.Context, c meta.Change, expected meta.Revision) (meta.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	present := s.entries[c.Key]
	if present.Deleted && !(s.manner.TakesDeletionRevision && expected == present.Revision) {
		present.Revision = 0
	}
	if present.Revision != expected {
		s.lags = s.manner.LagsAfterConflict
		return 0, meta.ErrConflict
	}
	if s.manner.LagsAfterConflict || s.manner.LagsAtWatch {
		s.before = maps.Clone(s.entries)
	}
	s.revision++
	c.Revision = s.revision
	s.entries[c.Key] = c
	s.changed.Broadcast()
	return c.Revision, nil
}

// Watch reports the present state and then every change.
func (s *Memory) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	if err := errors.Join(ctx.Err(), meta.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	w := &memWatcher{store: s, ctx: ctx, prefix: prefix}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manner.FixesStateAtWatch {
		w.fixLocked()
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	return w, nil
}

type memWatcher struct {
	store    *Memory
	ctx      context.Context
	prefix   string
	reported meta.Revision
	state    []meta.Change // what the first Next gives
	fixed    bool          // state is known
	begun    bool
}

// Next waits for changes.
func (w *memWatcher) Next() ([]meta.Change, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for w.ctx.Err() == nil {
		if !w.begun {
			w.begun = true
			w.fixLocked()
			return w.state, nil
		}
		if news := w.sinceLocked(w.store.entries, w.reported); len(news) > 0 {
			w.reported = w.store.revision
			return news, nil
		}
		w.store.changed.Wait()
	}
	return nil, w.ctx.Err()
}

// fixLocked takes the present state, once.
func (w *memWatcher) fixLocked() {
	if w.fixed {
		return
	}
	entries := w.store.entries
	if w.store.manner.LagsAtWatch {
		entries = w.store.before
	}
	w.state, w.reported, w.fixed = w.sinceLocked(entries, 0), w.store.revision, true
	if !w.store.manner.NotifiesOldDeletions {
		w.state = slices.DeleteFunc(w.state, func(c meta.Change) bool { return c.Deleted })
	}
}

// sinceLocked gives what happened under the prefix after a revision, oldest first.
func (w *memWatcher) sinceLocked(entries map[string]meta.Change, after meta.Revision) (news []meta.Change) {
	for key, c := range entries {
		if strings.HasPrefix(key, w.prefix) && c.Revision > after {
			c.Entry = copyOf(c.Entry)
			news = append(news, c)
		}
	}
	slices.SortFunc(news, func(x, y meta.Change) int { return cmp.Compare(x.Revision, y.Revision) })
	return news
}
