package sealed

import (
	"bytes"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func keysOf(t *testing.T, lines ...string) *Keys {
	t.Helper()
	keys, err := ParseKeys(strings.Join(lines, "\n"))
	testkit.Must(t, err)
	return keys
}

// R5: a value can be read back by whoever has the key, from its own entry alone.
func TestValuesAreSealed(t *testing.T) {
	first, second := NewKey(), NewKey()
	inner := metatest.NewMemory()
	store := New(inner, keysOf(t, first))
	secret := []byte(`{"key":"hunter2"}`)
	revision, err := store.CompareAndSet(t.Context(), "policies/send", 0, secret)
	testkit.Must(t, err)
	_, err = store.CompareAndSet(t.Context(), "records/1/2/lease/0", 0, []byte("seen"))
	testkit.Must(t, err)

	raw, err := inner.Get(t.Context(), "policies/send")
	testkit.Must(t, err)
	testkit.That(t, !bytes.Contains(raw.Value, []byte("hunter2")), "stored %q", raw.Value)
	hot, err := inner.Get(t.Context(), "records/1/2/lease/0")
	testkit.Must(t, err)
	testkit.Equal(t, string(hot.Value), "seen", "what is no secret")

	got, err := store.Get(t.Context(), "policies/send")
	testkit.Must(t, err)
	testkit.Equal(t, string(got.Value), string(secret), "read back")
	testkit.Equal(t, got.Revision, revision, "its revision")

	_, err = New(inner, keysOf(t, second)).Get(t.Context(), "policies/send")
	testkit.ErrorIs(t, err, ErrUnknownKey, "with another key")
	got, err = New(inner, keysOf(t, second, first)).Get(t.Context(), "policies/send")
	testkit.Must(t, err)
	testkit.Equal(t, string(got.Value), string(secret), "with the old key behind a new one")

	_, err = inner.CompareAndSet(t.Context(), "policies/all", 0, raw.Value)
	testkit.Must(t, err)
	_, err = store.Get(t.Context(), "policies/all")
	testkit.That(t, err != nil, "a value moved to another entry is read as %v", err)
}

// R5: with a new key, and with the first, everything is sealed anew, once.
func TestReseal(t *testing.T) {
	inner := metatest.NewMemory()
	for _, key := range []string{"policies/a", "hubs/h", "functions/f"} {
		_, err := inner.CompareAndSet(t.Context(), key, 0, []byte("text of "+key))
		testkit.Must(t, err)
	}
	first, second := NewKey(), NewKey()
	for _, step := range []struct {
		keys    []string
		crash   bool // before the file is rewritten
		want    bool
		entries int
	}{{[]string{first}, true, true, 2}, {[]string{first}, false, true, 0}, {[]string{first}, false, false, 0},
		{[]string{second, first}, false, true, 2}, {[]string{second}, false, false, 0}} {
		store := New(inner, keysOf(t, step.keys...))
		entries, due, err := store.Reseal(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, entries, step.entries, "%d keys: sealed", len(step.keys))
		testkit.Equal(t, due, step.want, "%d keys: the file is to be rewritten", len(step.keys))
		if due && !step.crash {
			testkit.Must(t, store.Compacted(t.Context()))
		}
		list, err := store.List(t.Context(), "")
		testkit.Must(t, err)
		for _, e := range list {
			if e.Key != compactKey {
				testkit.Equal(t, string(e.Value), "text of "+e.Key, "listed")
			}
		}
	}
	_, _, err := New(inner, keysOf(t, first)).Reseal(t.Context())
	testkit.ErrorIs(t, err, ErrUnknownKey, "with the old key alone")
}

// R5: changes are opened for those who watch.
func TestWatchOpens(t *testing.T) {
	store := New(metatest.NewMemory(), keysOf(t, NewKey()))
	watch, err := store.Watch(t.Context(), "policies/")
	testkit.Must(t, err)
	_, err = watch.Next()
	testkit.Must(t, err)
	revision, err := store.CompareAndSet(t.Context(), "policies/a", 0, []byte("one"))
	testkit.Must(t, err)
	changes, err := watch.Next()
	testkit.Must(t, err)
	testkit.Equal(t, string(changes[0].Value), "one", "watched")
	testkit.Must(t, store.Delete(t.Context(), "policies/a", revision))
	changes, err = watch.Next()
	testkit.Must(t, err)
	testkit.That(t, changes[0].Deleted && changes[0].Value == nil, "watched %v", changes)
}

func TestKeysAreRefused(t *testing.T) {
	for _, text := range []string{"", "# nothing\n\n", "short", NewKey() + "\nnot a key"} {
		_, err := ParseKeys(text)
		testkit.That(t, err != nil, "%q is taken", text)
	}
}

// Whatever is in the file, opening it is an error and no panic.
func FuzzOpen(f *testing.F) {
	keys, err := ParseKeys(NewKey())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(keys.Seal("a", []byte("value")))
	f.Add([]byte(magic))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		opened, newest, err := keys.Open("a", value)
		if err == nil && !newest && !bytes.Equal(opened, value) {
			t.Errorf("%q was opened as %q", value, opened)
		}
	})
}

var _ meta.Store = (*Store)(nil)

// R5: what leaves the yard in a backup is sealed, also what was stored before there was a key, and says
// by which key.
func TestStoredEntriesAreSealed(t *testing.T) {
	inner := metatest.NewMemory()
	keys := keysOf(t, NewKey())
	store := New(inner, keys)
	for key, in := range map[string]meta.Store{"policies/old": inner, "policies/new": store, "hubs/h": store} {
		_, err := in.CompareAndSet(t.Context(), key, 0, []byte("hunter2"))
		testkit.Must(t, err)
	}
	var seen []string
	testkit.Must(t, store.Stored(t.Context(), func(e meta.Entry) error {
		seen = append(seen, e.Key)
		id, sealed := KeyOf(e.Value)
		testkit.Equal(t, sealed, e.Key != "hubs/h", "%s is sealed", e.Key)
		testkit.Equal(t, keys.Has(id), sealed, "the key of %s is known", e.Key)
		testkit.Equal(t, keysOf(t, NewKey()).Has(id), false, "another key is taken for that of %s", e.Key)
		opened, _, err := keys.Open(e.Key, e.Value)
		testkit.Must(t, err)
		testkit.Equal(t, string(opened), "hunter2", "%s, opened", e.Key)
		return nil
	}))
	testkit.Slices(t, seen, []string{"hubs/h", "policies/new", "policies/old"}, "entries")
}
