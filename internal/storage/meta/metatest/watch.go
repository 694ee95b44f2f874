package metatest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func watchTests() []test {
	return []test{
		{"a watch tells the present state first", testWatchState},
		{"the present state may be empty", testWatchEmpty},
		{"a watch tells each change and its revision", testWatchChanges},
		{"a watch tells deletions and what is created again", testWatchDeletes},
		{"a watch tells of its prefix and nothing else", testWatchPrefix},
		{"several watchers are all told", testWatchSeveral},
		{"a watch not yet read misses nothing", testWatchUnread},
		{"a slow reader holds up nobody and is told the newest state", testWatchSlow},
		{"no change is missed between the state and the changes", testWatchGap},
	}
}

// follower reads a watch and keeps what it was told. It fails the test when the telling breaks the
// contract: a key outside of the prefix, a key twice in one answer, a revision that does not rise.
type follower struct {
	t        *testing.T
	watcher  meta.Watcher
	prefix   string
	begun    bool // the first answer was taken
	reported map[string]meta.Change
}

func newFollower(t *testing.T, s meta.Store, prefix string) *follower {
	t.Helper()
	watcher, err := s.Watch(impatient(t), prefix)
	if err != nil {
		t.Fatalf("watch %q: %v", prefix, err)
	}
	return &follower{t: t, watcher: watcher, prefix: prefix, reported: make(map[string]meta.Change)}
}

// next takes one answer and gives it.
func (f *follower) next() []meta.Change {
	f.t.Helper()
	changes, err := f.watcher.Next()
	if err != nil {
		f.t.Fatalf("watch %q: %v", f.prefix, err)
	}
	f.begun = true
	if err := f.take(changes); err != nil {
		f.t.Fatal(err)
	}
	return changes
}

func (f *follower) take(changes []meta.Change) error {
	seen := make(map[string]bool)
	for _, c := range changes {
		before := f.reported[c.Key].Revision
		switch {
		case !strings.HasPrefix(c.Key, f.prefix):
			return fmt.Errorf("watch %q told of %q", f.prefix, c.Key)
		case seen[c.Key]:
			return fmt.Errorf("watch %q told of %q twice at once", f.prefix, c.Key)
		case c.Revision <= before:
			return fmt.Errorf("watch %q told of %q at revision %d after %d", f.prefix, c.Key, c.Revision, before)
		case c.Deleted && c.Value != nil:
			return fmt.Errorf("watch %q told of the deletion of %q with a value", f.prefix, c.Key)
		}
		seen[c.Key] = true
		c.Value = slices.Clone(c.Value)
		f.reported[c.Key] = c
	}
	return nil
}

// until reads on until the key was told at the revision or a later one. Only the first
// answer may be empty: a store may fix the present state when the watch begins.
func (f *follower) until(key string, revision meta.Revision) {
	f.t.Helper()
	for f.reported[key].Revision < revision {
		first := !f.begun
		if len(f.next()) == 0 && !first {
			f.t.Fatalf("watch %q gave an answer without a change", f.prefix)
		}
	}
}

// want checks the newest that was told of a key.
func (f *follower) want(key, value string, revision meta.Revision) {
	f.t.Helper()
	if c := f.reported[key]; c.Deleted || string(c.Value) != value || c.Revision != revision {
		f.t.Errorf("watch %q told %q = %q at revision %d (deleted: %t), want %q at %d",
			f.prefix, key, c.Value, c.Revision, c.Deleted, value, revision)
	}
}

// wantDeleted checks that the newest that was told of a key is its deletion.
func (f *follower) wantDeleted(key string, after meta.Revision) {
	f.t.Helper()
	if c := f.reported[key]; !c.Deleted || c.Revision <= after {
		f.t.Errorf("watch %q told %q at revision %d (deleted: %t), want its deletion after %d",
			f.prefix, key, c.Revision, c.Deleted, after)
	}
}

func testWatchState(t *testing.T, s meta.Store) {
	a := mustSet(t, s, "k/a", 0, "one")
	b := mustSet(t, s, "k/b", mustSet(t, s, "k/b", 0, "one"), "two")
	mustDelete(t, s, "k/gone", mustSet(t, s, "k/gone", 0, "one"))
	f := newFollower(t, s, "k/")
	f.next()
	f.want("k/a", "one", a)
	f.want("k/b", "two", b)
	if c, reported := f.reported["k/gone"]; reported && !c.Deleted {
		t.Errorf("a key deleted before was told as %q", c.Value)
	}
}

func testWatchEmpty(t *testing.T, s meta.Store) {
	mustSet(t, s, "elsewhere", 0, "one")
	f := newFollower(t, s, "k/")
	if changes := f.next(); len(changes) != 0 {
		t.Errorf("an empty state has %d changes", len(changes))
	}
	revision := mustSet(t, s, "k/a", 0, "one")
	f.until("k/a", revision)
	f.want("k/a", "one", revision)
}

func testWatchChanges(t *testing.T, s meta.Store) {
	f := newFollower(t, s, "")
	f.next()
	var revision meta.Revision
	for i := range 20 {
		value := strconv.Itoa(i)
		revision = mustSet(t, s, "a", revision, value)
		f.until("a", revision)
		f.want("a", value, revision)
	}
	if _, err := s.CompareAndSet(t.Context(), "a", 0, []byte("conflict")); err == nil {
		t.Fatal("created twice")
	}
	other := mustSet(t, s, "b", 0, "end")
	f.until("b", other)
	f.want("a", "19", revision) // what was refused is not told
}

func testWatchDeletes(t *testing.T, s meta.Store) {
	first := mustSet(t, s, "a", 0, "one")
	f := newFollower(t, s, "")
	f.next()
	f.want("a", "one", first)

	mustDelete(t, s, "a", first)
	f.until("a", first+1)
	f.wantDeleted("a", first)
	deletion := f.reported["a"].Revision

	second := mustSet(t, s, "a", 0, "two")
	if second <= deletion {
		t.Errorf("created again at revision %d, the deletion was at %d", second, deletion)
	}
	f.until("a", second)
	f.want("a", "two", second)

	// Created and deleted between two answers: the newest state is the deletion.
	brief := mustSet(t, s, "b", 0, "brief")
	mustDelete(t, s, "b", brief)
	f.until("b", brief+1)
	f.wantDeleted("b", brief)
}

func testWatchPrefix(t *testing.T, s meta.Store) {
	f := newFollower(t, s, "a/")
	f.next()
	for _, key := range []string{"a", "ab/c", "b/a/c", "a.b"} {
		mustSet(t, s, key, 0, "not ours")
	}
	revision := mustSet(t, s, "a/b/c", 0, "ours")
	f.until("a/b/c", revision)
	if len(f.reported) != 1 {
		t.Errorf("told of %d keys, want 1", len(f.reported))
	}
}

func testWatchSeveral(t *testing.T, s meta.Store) {
	var followers []*follower
	for _, prefix := range []string{"", "", "k/", "k/a/", "other/"} {
		f := newFollower(t, s, prefix)
		f.next()
		followers = append(followers, f)
	}
	revision := mustSet(t, s, "k/a/x", 0, "one")
	end := mustSet(t, s, "other/end", 0, "end")
	for _, f := range followers[:4] {
		f.until("k/a/x", revision)
		f.want("k/a/x", "one", revision)
	}
	for _, i := range []int{0, 1, 4} {
		followers[i].until("other/end", end)
	}
}

// Where the store fixes the present state is its choice; all is told either way.
func testWatchUnread(t *testing.T, s meta.Store) {
	before := mustSet(t, s, "k/before", 0, "one")
	changed := mustSet(t, s, "k/changed", 0, "one")
	gone := mustSet(t, s, "k/gone", 0, "one")
	f := newFollower(t, s, "k/")
	changed = mustSet(t, s, "k/changed", changed, "two")
	mustDelete(t, s, "k/gone", gone)
	after := mustSet(t, s, "k/after", 0, "one")

	f.next()
	f.until("k/after", after)
	f.until("k/changed", changed)
	f.want("k/before", "one", before)
	f.want("k/changed", "two", changed)
	f.want("k/after", "one", after)
	if _, reported := f.reported["k/gone"]; reported {
		f.until("k/gone", gone+1)
		f.wantDeleted("k/gone", gone)
	}
}

func testWatchSlow(t *testing.T, s meta.Store) {
	slow, neverRead := newFollower(t, s, "k/"), newFollower(t, s, "k/")
	slow.next()
	newest := make(map[string]meta.Revision)
	for i := range 300 {
		key := fmt.Sprintf("k/%d", i%3)
		newest[key] = mustSet(t, s, key, newest[key], strconv.Itoa(i))
	}
	mustDelete(t, s, "k/2", newest["k/2"])
	for _, f := range []*follower{slow, neverRead} {
		f.until("k/0", newest["k/0"])
		f.until("k/1", newest["k/1"])
		f.want("k/0", "297", newest["k/0"])
		f.want("k/1", "298", newest["k/1"])
	}
	slow.until("k/2", newest["k/2"]+1)
	slow.wantDeleted("k/2", newest["k/2"])
}

// Watches begin while writers create keys, each changed only once: a change that falls
// between a watch's state and its first change, and is missed there, is never told.
func testWatchGap(t *testing.T, s meta.Store) {
	const writers, keys, most = 4, 50, 200
	revisions := make([]meta.Revision, writers*keys)
	keyOf := func(i int) string { return fmt.Sprintf("k/%03d", i) }
	var all sync.WaitGroup
	var written atomic.Bool
	for w := range writers {
		all.Go(func() {
			for i := w * keys; i < (w+1)*keys; i++ {
				revision, err := s.CompareAndSet(t.Context(), keyOf(i), 0, []byte("once"))
				if err != nil {
					t.Errorf("set %q: %v", keyOf(i), err)
				}
				revisions[i] = revision
			}
			written.Store(true)
		})
	}
	var followers []*follower
	for len(followers) < most && !written.Load() {
		f := newFollower(t, s, "k/")
		f.next()
		followers = append(followers, f)
	}
	all.Wait()
	for _, f := range followers {
		for i, revision := range revisions {
			f.until(keyOf(i), revision)
			f.want(keyOf(i), "once", revision)
		}
	}
}
