package metatest

import (
	"bytes"
	"context"
	"errors"
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
	entry, ok := s.entries[key]
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
	if present.Deleted {
		present.Revision = 0
	}
	if present.Revision != expected {
		return 0, meta.ErrConflict
	}
	s.revision++
	c.Revision = s.revision
	s.entries[c.Key] = c
	s.changed.Broadcast()
	return c.Revision, nil
}

// Watch tells the present state and then every change.
func (s *Memory) Watch(ctx context.Context, prefix string) (meta.Watcher, error) {
	if err := errors.Join(ctx.Err(), meta.CheckPrefix(prefix)); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	return &memWatcher{store: s, ctx: ctx, prefix: prefix}, nil
}

type memWatcher struct {
	store    *Memory
	ctx      context.Context
	prefix   string
	reported meta.Revision
	begun    bool
}

// Next waits for changes.
func (w *memWatcher) Next() ([]meta.Change, error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		if news := w.newsLocked(); len(news) > 0 || !w.begun {
			w.begun = true
			w.reported = w.store.revision
			return news, nil
		}
		w.store.changed.Wait()
	}
}

func (w *memWatcher) newsLocked() []meta.Change {
	var news []meta.Change
	for key, entry := range w.store.entries {
		if !strings.HasPrefix(key, w.prefix) || entry.Revision <= w.reported || !w.begun && entry.Deleted {
			continue
		}
		entry.Entry = copyOf(entry.Entry)
		news = append(news, entry)
	}
	slices.SortFunc(news, func(x, y meta.Change) int { return int(x.Revision) - int(y.Revision) })
	return news
}
