package metatest

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// OpenDurable gives a new empty store, and what closes the store given last and opens
// the same entries again. It arranges for the closing of the last one by t.Cleanup.
type OpenDurable func(t *testing.T) (store meta.Store, reopen func() meta.Store)

// RunDurable tests what must hold from one opening of a store to the next.
func RunDurable(t *testing.T, open OpenDurable) {
	tests := []struct {
		name string
		run  func(t *testing.T, s meta.Store, reopen func() meta.Store)
	}{
		{"what was acknowledged is there after reopening, at its revision", testReopenState},
		{"revisions go on rising after reopening", testReopenRevisions},
		{"a deletion is not forgotten by reopening", testReopenDeletion},
		{"a watch begun after reopening tells the state of before", testReopenWatch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, reopen := open(t)
			test.run(t, s, reopen)
		})
	}
}

func testReopenState(t *testing.T, s meta.Store, reopen func() meta.Store) {
	revisions := make(map[string]meta.Revision)
	for round := range 3 {
		for i := range 10 {
			key := fmt.Sprintf("k/%d/%d", round, i)
			revisions[key] = mustSet(t, s, key, 0, "value of "+key)
		}
		for key, revision := range revisions {
			wantEntry(t, s, key, "value of "+key, revision)
		}
		s = reopen()
	}
	for key, revision := range revisions {
		wantEntry(t, s, key, "value of "+key, revision)
	}
	if got := mustList(t, s, ""); len(got) != len(revisions) {
		t.Errorf("%d keys are listed after reopening, want %d", len(got), len(revisions))
	}
}

// The newest revision belongs to a key that no longer exists: the store must know it all the same.
func testReopenRevisions(t *testing.T, s meta.Store, reopen func() meta.Store) {
	mustSet(t, s, "stays", 0, "one")
	newest := mustSet(t, s, "a", 0, "one")
	mustDelete(t, s, "a", newest)
	for range 3 {
		s = reopen()
		revision := mustSet(t, s, "a", 0, "again")
		if revision <= newest {
			t.Fatalf("revision %d after reopening, %d was given before", revision, newest)
		}
		mustDelete(t, s, "a", revision)
		newest = revision
	}
}

func testReopenDeletion(t *testing.T, s meta.Store, reopen func() meta.Store) {
	revision := mustSet(t, s, "a", 0, "one")
	mustDelete(t, s, "a", revision)
	s = reopen()
	wantMissing(t, s, "a")
	_, err := s.CompareAndSet(t.Context(), "a", revision, []byte("stale"))
	wantError(t, "update at the revision of an earlier life", err, meta.ErrConflict)
}

func testReopenWatch(t *testing.T, s meta.Store, reopen func() meta.Store) {
	revision := mustSet(t, s, "a", 0, "one")
	s = reopen()
	f := newFollower(t, s, "")
	f.next()
	f.want("a", "one", revision)
	revision = mustSet(t, s, "a", revision, "two")
	f.until("a", revision)
	f.want("a", "two", revision)
}
