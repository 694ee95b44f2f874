package metatest

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func endTests() []test {
	return []test{
		{"a watch ends with its context", testWatchEnds},
		{"the end of one watch does not disturb another", testWatchEndsAlone},
		{"a call whose context has ended does not hang and leaves the store well", testEndedContext},
		{"a closed store says so", testClosed},
	}
}

func testWatchEnds(t *testing.T, s meta.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := s.Watch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Next(); err != nil {
		t.Fatalf("first answer: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := watcher.Next()
		ended <- err
	}()
	cancel()
	wantError(t, "a waiting Next", <-ended, context.Canceled)
	mustSet(t, s, "a", 0, "one")
	_, err = watcher.Next()
	wantError(t, "Next after the end", err, context.Canceled)
}

func testWatchEndsAlone(t *testing.T, s meta.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watcher, err := s.Watch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watcher.Next(); err != nil {
		t.Fatal(err)
	}
	f := newFollower(t, s, "")
	f.next()
	cancel()
	revision := mustSet(t, s, "a", 0, "one")
	f.until("a", revision)
	f.want("a", "one", revision)
}

// A store may answer from what it has at hand or give the context's error; after a
// change that ended so, both outcomes are allowed, and the next change settles it.
func testEndedContext(t *testing.T, s meta.Store) {
	revision := mustSet(t, s, "a", 0, "one")
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := s.Get(ended, "a")
	wantNilOr(t, "get", err, context.Canceled)
	_, err = s.List(ended, "")
	wantNilOr(t, "list", err, context.Canceled)
	wantNilOr(t, "fresh", s.Fresh(ended, ""), context.Canceled)
	_, err = s.CompareAndSet(ended, "a", revision, []byte("two"))
	wantNilOr(t, "set", err, context.Canceled)
	if watcher, err := s.Watch(ended, ""); err == nil {
		_, err = watcher.Next()
		wantError(t, "watch", err, context.Canceled)
	} else {
		wantError(t, "watch", err, context.Canceled)
	}

	for {
		entry := mustGet(t, s, "a")
		revision, err := s.CompareAndSet(t.Context(), "a", entry.Revision, []byte("three"))
		if errors.Is(err, meta.ErrConflict) {
			continue // the change of before has only now come through
		}
		if err != nil {
			t.Fatal(err)
		}
		wantEntry(t, s, "a", "three", revision)
		return
	}
}

func wantNilOr(t *testing.T, what string, err, want error) {
	t.Helper()
	if err != nil {
		wantError(t, what, err, want)
	}
}

func testClosed(t *testing.T, s meta.Store) {
	closer, ok := s.(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	revision := mustSet(t, s, "a", 0, "one")
	f := newFollower(t, s, "")
	f.next()
	waiting := make(chan error)
	go func() {
		_, err := f.watcher.Next()
		waiting <- err
	}()
	for range 2 {
		if err := closer.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	wantError(t, "a waiting Next", <-waiting, meta.ErrClosed)
	_, err := f.watcher.Next()
	wantError(t, "Next", err, meta.ErrClosed)
	_, err = s.Get(t.Context(), "a")
	wantError(t, "get", err, meta.ErrClosed)
	_, err = s.List(t.Context(), "")
	wantError(t, "list", err, meta.ErrClosed)
	_, err = s.CompareAndSet(t.Context(), "a", revision, nil)
	wantError(t, "set", err, meta.ErrClosed)
	wantError(t, "delete", s.Delete(t.Context(), "a", revision), meta.ErrClosed)
	wantError(t, "fresh", s.Fresh(t.Context(), ""), meta.ErrClosed)
	_, err = s.Watch(t.Context(), "")
	wantError(t, "watch", err, meta.ErrClosed)
}
