package metatest_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// manner is how a model differs from the plainest store.
type manner struct {
	// What the contract leaves to a store.
	fixesStateAtWatch    bool // and not at the first Next
	notifiesOldDeletions bool // in the present state

	// What it forbids.
	takesDeletionRevision bool // for that of a value
	lagsAfterConflict     bool // the next read does not show what conflicted
	lagsAtWatch           bool // the present state lacks the newest change
}

// model is the contract as a map, in one of many manners.
type model struct {
	manner manner

	mu       sync.Mutex
	changed  sync.Cond              // of mu
	newest   map[string]meta.Change // by key, deletions too; guarded by mu
	before   map[string]meta.Change // newest without the last change; guarded by mu
	revision meta.Revision          // guarded by mu
	lags     bool                   // the next Get is answered from before; guarded by mu
}

func newModel(m manner) *model {
	s := &model{manner: m, newest: make(map[string]meta.Change)}
	s.changed.L = &s.mu
	return s
}

func (s *model) Get(ctx context.Context, key string) (meta.Entry, error) {
	if err := errors.Join(ctx.Err(), meta.CheckKey(key)); err != nil {
		return meta.Entry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.newest
	if s.lags {
		entries, s.lags = s.before, false
	}
	entry, ok := entries[key]
	if !ok || entry.Deleted {
		return meta.Entry{}, meta.ErrNotFound
	}
	return own(entry).Entry, nil
}

// own gives a change in bytes of the caller's.
func own(c meta.Change) meta.Change {
	c.Value = bytes.Clone(c.Value)
	return c
}

func (s *model) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if err := errors.Join(ctx.Err(), meta.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []meta.Entry
	for _, key := range slices.Sorted(maps.Keys(s.newest)) {
		if entry := s.newest[key]; strings.HasPrefix(key, prefix) && !entry.Deleted {
			entries = append(entries, own(entry).Entry)
		}
	}
	return entries, nil
}

func (s *model) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	if err := errors.Join(meta.CheckKey(key), meta.CheckValue(value)); err != nil {
		return 0, err
	}
	return s.change(ctx, own(meta.Change{Entry: meta.Entry{Key: key, Value: value}}), expected)
}

func (s *model) Delete(ctx context.Context, key string, expected meta.Revision) error {
	if err := meta.CheckKey(key); err != nil {
		return err
	}
	if expected == 0 {
		return meta.ErrInvalid
	}
	_, err := s.change(ctx, meta.Change{Entry: meta.Entry{Key: key}, Deleted: true}, expected)
	return err
}

func (s *model) change(ctx context.Context, c meta.Change, expected meta.Revision) (meta.Revision, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fitsLocked(s.newest[c.Key], expected) {
		s.lags = s.manner.lagsAfterConflict
		return 0, meta.ErrConflict
	}
	s.revision++
	c.Revision = s.revision
	s.before = maps.Clone(s.newest)
	s.newest[c.Key] = c
	s.changed.Broadcast()
	return c.Revision, nil
}

func (s *model) fitsLocked(present meta.Change, expected meta.Revision) bool {
	if present.Deleted && s.manner.takesDeletionRevision && expected == present.Revision {
		return true
	}
	if present.Deleted {
		return expected == 0
	}
	return expected == present.Revision
}

func (s *model) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	if err := errors.Join(ctx.Err(), meta.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	w := &modelWatcher{store: s, ctx: ctx, prefix: prefix}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manner.fixesStateAtWatch {
		w.state, w.reported, w.fixed = w.stateLocked(), s.revision, true
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	return w, nil
}

type modelWatcher struct {
	store    *model
	ctx      context.Context
	prefix   string
	state    []meta.Change
	fixed    bool // state is what the first Next gives
	begun    bool
	reported meta.Revision
}

func (w *modelWatcher) Next() ([]meta.Change, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for w.ctx.Err() == nil {
		if !w.begun {
			return w.beginLocked(), nil
		}
		if news := w.sinceLocked(w.store.newest, w.reported); len(news) > 0 {
			w.reported = w.store.revision
			return news, nil
		}
		w.store.changed.Wait()
	}
	return nil, w.ctx.Err()
}

func (w *modelWatcher) beginLocked() []meta.Change {
	w.begun = true
	if !w.fixed {
		w.state, w.reported = w.stateLocked(), w.store.revision
	}
	return w.state
}

func (w *modelWatcher) stateLocked() []meta.Change {
	entries := w.store.newest
	if w.store.manner.lagsAtWatch {
		entries = w.store.before
	}
	state := w.sinceLocked(entries, 0)
	if w.store.manner.notifiesOldDeletions {
		return state
	}
	return slices.DeleteFunc(state, func(c meta.Change) bool { return c.Deleted })
}

// sinceLocked gives what happened under the prefix after a revision, oldest first.
func (w *modelWatcher) sinceLocked(entries map[string]meta.Change, after meta.Revision) []meta.Change {
	var news []meta.Change
	for key, entry := range entries {
		if strings.HasPrefix(key, w.prefix) && entry.Revision > after {
			news = append(news, own(entry))
		}
	}
	slices.SortFunc(news, func(x, y meta.Change) int { return int(x.Revision) - int(y.Revision) })
	return news
}
