package metatest

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func setTests() []test {
	return []test{
		{"a key that does not exist is created at revision zero", testCreate},
		{"creating a key that exists is a conflict and changes nothing", testCreateConflict},
		{"an update wants the key's present revision", testUpdate},
		{"an update of a key that does not exist is a conflict", testUpdateMissing},
		{"every change has a higher revision than all before of its key", testRevisionsRise},
		{"a value may be empty, and as large as allowed", testValueSizes},
		{"a key may have any character but control characters", testKeyCharacters},
		{"keys and values of another form are refused and change nothing", testInvalid},
		{"the caller may reuse the bytes it gave and change the bytes it got", testCallerOwnsBytes},
	}
}

func deleteTests() []test {
	return []test{
		{"a delete wants the key's present revision", testDelete},
		{"a delete of a key that does not exist is a conflict", testDeleteMissing},
		{"a delete without a revision is refused", testDeleteAtZero},
		{"a key deleted and created again has a higher revision than before", testRecreate},
		{"the revision of a deletion is no expectation", testDeletionRevision},
	}
}

func testCreate(t *testing.T, s meta.Store) {
	wantMissing(t, s, "hubs/a")
	revision := mustSet(t, s, "hubs/a", 0, "one")
	wantEntry(t, s, "hubs/a", "one", revision)
	wantMissing(t, s, "hubs/b")
	wantMissing(t, s, "hubs")
}

func testCreateConflict(t *testing.T, s meta.Store) {
	revision := mustSet(t, s, "hubs/a", 0, "one")
	_, err := s.CompareAndSet(t.Context(), "hubs/a", 0, []byte("two"))
	wantError(t, "create again", err, meta.ErrConflict)
	wantEntry(t, s, "hubs/a", "one", revision)
}

func testUpdate(t *testing.T, s meta.Store) {
	first := mustSet(t, s, "hubs/a", 0, "one")
	second := mustSet(t, s, "hubs/a", first, "two")
	for _, stale := range []meta.Revision{first, second + 1} {
		_, err := s.CompareAndSet(t.Context(), "hubs/a", stale, []byte("three"))
		wantError(t, "update at another revision", err, meta.ErrConflict)
	}
	wantEntry(t, s, "hubs/a", "two", second)
	third := mustSet(t, s, "hubs/a", second, "two")
	wantEntry(t, s, "hubs/a", "two", third) // the same value again is a change too
}

func testUpdateMissing(t *testing.T, s meta.Store) {
	revision := mustSet(t, s, "hubs/a", 0, "one")
	_, err := s.CompareAndSet(t.Context(), "hubs/b", revision, []byte("two"))
	wantError(t, "update what is not there", err, meta.ErrConflict)
	wantMissing(t, s, "hubs/b")
}

// Changes of other keys come between: a store may count all of them, or each key's alone.
func testRevisionsRise(t *testing.T, s meta.Store) {
	newest := map[string]meta.Revision{}
	change := func(key string, expected meta.Revision) meta.Revision {
		t.Helper()
		revision := mustSet(t, s, key, expected, "value")
		if revision <= newest[key] {
			t.Fatalf("%s: revision %d does not follow %d", key, revision, newest[key])
		}
		newest[key] = revision
		return revision
	}
	a, b := change("a", 0), change("b", 0)
	a = change("a", a)
	mustDelete(t, s, "b", b)
	change("c", 0)
	b = change("b", 0)
	change("a", a)
	change("b", b)
}

func testValueSizes(t *testing.T, s meta.Store) {
	revision := mustSet(t, s, "empty", 0, "")
	wantEntry(t, s, "empty", "", revision)

	large := strings.Repeat("0123456789abcdef", meta.MaxValueBytes/16)
	revision = mustSet(t, s, "large", 0, large)
	entry := mustGet(t, s, "large")
	if string(entry.Value) != large || entry.Revision != revision {
		t.Errorf("the largest value came back with %d bytes at revision %d", len(entry.Value), entry.Revision)
	}
	revision = mustSet(t, s, "large", revision, "small")
	wantEntry(t, s, "large", "small", revision)
}

func testKeyCharacters(t *testing.T, s meta.Store) {
	keys := []string{
		"*", ">", ".", "..", "$Default", "a b", "a.b.c", "a.*", "a/>", "A/b", "a/B", "%2F", "a%2Fb", "=", "_", "-",
		`back\slash`, `"quoted"`, "größe/日本/🌳", "a=b;c,d", strings.Repeat("k", meta.MaxKeyBytes),
		strings.Repeat("s/", meta.MaxKeyBytes/2-1) + "sx", strings.Repeat("ü", meta.MaxKeyBytes/2),
	}
	revisions := make(map[string]meta.Revision)
	for _, key := range keys {
		revisions[key] = mustSet(t, s, key, 0, "value of "+key)
	}
	for _, key := range keys {
		wantEntry(t, s, key, "value of "+key, revisions[key])
	}
	if got := mustList(t, s, ""); len(got) != len(keys) {
		t.Errorf("%d keys are listed, want %d", len(got), len(keys))
	}
}

func testInvalid(t *testing.T, s meta.Store) {
	ctx := t.Context()
	for _, key := range []string{"", "/", "a/", "/a", "a//b", "a\x00", "a\nb", "a\x7f", "\xff", strings.Repeat("k", meta.MaxKeyBytes+1)} {
		_, err := s.Get(ctx, key)
		wantError(t, "get", err, meta.ErrInvalid)
		_, err = s.CompareAndSet(ctx, key, 0, nil)
		wantError(t, "set", err, meta.ErrInvalid)
		wantError(t, "delete", s.Delete(ctx, key, 1), meta.ErrInvalid)
	}
	for _, prefix := range []string{"a", "/", "a//", "/a/", "a\x00/"} {
		_, err := s.List(ctx, prefix)
		wantError(t, "list", err, meta.ErrInvalid)
		_, err = s.Watch(ctx, prefix)
		wantError(t, "watch", err, meta.ErrInvalid)
		wantError(t, "fresh", s.Fresh(ctx, prefix), meta.ErrInvalid)
	}
	_, err := s.CompareAndSet(ctx, "large", 0, make([]byte, meta.MaxValueBytes+1))
	wantError(t, "set a value too large", err, meta.ErrInvalid)
	if got := mustList(t, s, ""); len(got) != 0 {
		t.Errorf("%d keys are listed after nothing but refusals", len(got))
	}
}

func testCallerOwnsBytes(t *testing.T, s meta.Store) {
	// Long enough not to be kept in some corner of its own.
	precious, again := strings.Repeat("precious", 1000), strings.Repeat("again", 1000)
	given := []byte(precious)
	revision, err := s.CompareAndSet(t.Context(), "a", 0, given)
	if err != nil {
		t.Fatal(err)
	}
	scribble(given)
	wantEntry(t, s, "a", precious, revision)

	scribble(mustGet(t, s, "a").Value)
	wantEntry(t, s, "a", precious, revision)

	scribble(mustList(t, s, "")[0].Value)
	wantEntry(t, s, "a", precious, revision)

	one, two := newFollower(t, s, ""), newFollower(t, s, "")
	scribble(one.next()[0].Value)
	two.next()
	two.want("a", precious, revision)

	given = []byte(again)
	if revision, err = s.CompareAndSet(t.Context(), "a", revision, given); err != nil {
		t.Fatal(err)
	}
	scribble(given)
	scribble(one.next()[0].Value)
	two.next()
	two.want("a", again, revision)
	wantEntry(t, s, "a", again, revision)
}

func scribble(b []byte) {
	for i := range b {
		b[i] = '#'
	}
	_ = append(b, "overrun"...) // room behind a slice is the caller's as well
}

func testDelete(t *testing.T, s meta.Store) {
	first := mustSet(t, s, "a", 0, "one")
	second := mustSet(t, s, "a", first, "two")
	other := mustSet(t, s, "b", 0, "other")
	for _, stale := range []meta.Revision{first, second + 1} {
		wantError(t, "delete at another revision", s.Delete(t.Context(), "a", stale), meta.ErrConflict)
	}
	wantEntry(t, s, "a", "two", second)
	mustDelete(t, s, "a", second)
	wantMissing(t, s, "a")
	wantEntry(t, s, "b", "other", other)
}

func testDeleteMissing(t *testing.T, s meta.Store) {
	wantError(t, "delete what never was", s.Delete(t.Context(), "a", 1), meta.ErrConflict)
	revision := mustSet(t, s, "a", 0, "one")
	mustDelete(t, s, "a", revision)
	wantError(t, "delete twice", s.Delete(t.Context(), "a", revision), meta.ErrConflict)
}

// The contract forbids the call without naming the error.
func testDeleteAtZero(t *testing.T, s meta.Store) {
	revision := mustSet(t, s, "a", 0, "one")
	if err := s.Delete(t.Context(), "a", 0); !errors.Is(err, meta.ErrInvalid) && !errors.Is(err, meta.ErrConflict) {
		t.Errorf("delete at revision zero: got %v, want ErrInvalid or ErrConflict", err)
	}
	wantEntry(t, s, "a", "one", revision)
}

func testRecreate(t *testing.T, s meta.Store) {
	var newest meta.Revision
	for range 3 {
		revision := mustSet(t, s, "a", 0, "here")
		if revision <= newest {
			t.Fatalf("created again at revision %d, it was at %d before", revision, newest)
		}
		if newest != 0 {
			_, err := s.CompareAndSet(t.Context(), "a", newest, []byte("stale"))
			wantError(t, "update at the revision of an earlier life", err, meta.ErrConflict)
			wantError(t, "delete at the revision of an earlier life", s.Delete(t.Context(), "a", newest), meta.ErrConflict)
		}
		wantEntry(t, s, "a", "here", revision)
		mustDelete(t, s, "a", revision)
		_, err := s.CompareAndSet(t.Context(), "a", revision, []byte("stale"))
		wantError(t, "update after the delete", err, meta.ErrConflict)
		newest = revision
	}
}

// A watch tells the revision of a deletion; a store that keeps deletions as entries
// could take it for that of a value.
func testDeletionRevision(t *testing.T, s meta.Store) {
	f := newFollower(t, s, "")
	f.next()
	for range 2 { // and once more in the key's second life
		revision := mustSet(t, s, "a", 0, "here")
		mustDelete(t, s, "a", revision)
		f.until("a", revision+1)
		f.wantDeleted("a", revision)
		deletion := f.reported["a"].Revision

		_, err := s.CompareAndSet(t.Context(), "a", deletion, []byte("undead"))
		wantError(t, "update at the revision of the deletion", err, meta.ErrConflict)
		wantError(t, "delete at the revision of the deletion", s.Delete(t.Context(), "a", deletion), meta.ErrConflict)
		wantMissing(t, s, "a")
	}
}
