package bolt

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: a snapshot is of one moment, whatever changes while it is visited.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "meta.db"), NoSync: true, Log: testkit.Quiet()})
	testkit.Must(t, err)
	defer s.Close()
	for i := range 5 { // or the changes below would wait for a larger mapping, and that for the snapshot
		testkit.Must(t, testkit.Err(s.CompareAndSet(t.Context(), fmt.Sprintf("0/%d", i), 0, make([]byte, 450<<10))))
	}
	const entries = 10
	revisions := map[string]meta.Revision{}
	for i := range entries {
		key := fmt.Sprintf("a/%02d", i)
		revisions[key], err = s.CompareAndSet(t.Context(), key, 0, []byte("old"))
		testkit.Must(t, err)
	}
	var seen []string
	err = s.Snapshot(t.Context(), func(e meta.Entry) error {
		if e.Key[0] == '0' {
			return nil
		}
		if len(seen) == 0 { // all change, and one more comes
			for key, revision := range revisions {
				testkit.Must(t, testkit.Err(s.CompareAndSet(t.Context(), key, revision, []byte("new"))))
			}
			testkit.Must(t, testkit.Err(s.CompareAndSet(t.Context(), "z", 0, []byte("new"))))
		}
		testkit.Equal(t, string(e.Value), "old", "the value of %s", e.Key)
		testkit.Equal(t, e.Revision, revisions[e.Key], "the revision of %s", e.Key)
		seen = append(seen, e.Key)
		return nil
	})
	testkit.Must(t, err)
	testkit.Equal(t, len(seen), entries, "entries")

	enough := errors.New("enough")
	testkit.ErrorIs(t, s.Snapshot(t.Context(), func(meta.Entry) error { return enough }), enough, "the visitor's error")
}

// C7: revisions of a restored store are above all that clients may remember.
func TestRaisedRevisions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meta.db")
	s, err := Open(Config{Path: path, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Must(t, s.Raise(t.Context(), 1<<40))
	first, err := s.CompareAndSet(t.Context(), "a", 0, nil)
	testkit.Must(t, err)
	testkit.Equal(t, first, 1<<40+1, "the first revision")
	testkit.Must(t, s.Raise(t.Context(), 7)) // never down
	testkit.Must(t, s.Close())
	testkit.Must(t, Check(path))
	s, err = Open(Config{Path: path, Log: testkit.Quiet()})
	testkit.Must(t, err)
	defer s.Close()
	second, err := s.CompareAndSet(t.Context(), "a", first, nil)
	testkit.Must(t, err)
	testkit.Equal(t, second, 1<<40+2, "the next one, after another start")
}
