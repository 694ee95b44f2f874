package storetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/processor"
)

const (
	maxKey   = 200
	maxValue = 16 << 10
)

var entryTests = []test{
	{"a group that did nothing has no entries", noEntries},
	{"an entry is put, read, changed and removed", entryLife},
	{"putting an entry that exists without its version is a conflict", putExisting},
	{"putting in an old version is a conflict", putStale},
	{"putting in a version of what does not exist is a conflict", putMissing},
	{"removing in an old version, or what does not exist, is a conflict", removeStale},
	{"removing without a version is refused", removeWithoutVersion},
	{"versions never come back, not even after a removal", entryVersions},
	{"keys of all letters that are allowed are told apart", entryKeys},
	{"prefixes end at a slash and have no wildcards", entryPrefixes},
	{"values are bytes of any kind, from none to 16 KiB", entryValues},
	{"keys and values beyond the limits are refused", entryLimits},
	{"many entries are read", manyEntries},
	{"entries, leases and checkpoints are apart", entriesApart},
}

func noEntries(f *fixture) {
	f.wantEntries("")
	f.wantEntries("presence/")
}

func entryLife(f *fixture) {
	first := f.put(processor.Entry{Key: "presence/a", Value: []byte(`{"nonce":1}`)})
	f.wantEntries("", first)
	second := f.put(processor.Entry{Key: first.Key, Value: []byte(`{"nonce":2}`), Version: first.Version})
	f.wantEntries("", second)
	if err := f.store.Remove(f.ctx, f.group, second); err != nil {
		f.Fatalf("remove: %v", err)
	}
	f.wantEntries("")
	f.wantEntries("", f.put(processor.Entry{Key: first.Key, Value: []byte("3")}))
}

func putExisting(f *fixture) {
	had := f.put(processor.Entry{Key: "next/0", Value: []byte("a")})
	f.putFails(processor.Entry{Key: "next/0", Value: []byte("b")})
	f.wantEntries("", had)
}

func putStale(f *fixture) {
	old := f.put(processor.Entry{Key: "next/0", Value: []byte("a")})
	now := f.put(old) // the same value is a new version
	f.putFails(processor.Entry{Key: "next/0", Value: []byte("b"), Version: old.Version})
	f.wantEntries("", now)
}

func putMissing(f *fixture) {
	had := f.put(processor.Entry{Key: "next/0", Value: []byte("a")})
	f.putFails(processor.Entry{Key: "next/1", Value: []byte("a"), Version: had.Version})
	f.wantEntries("", had)
}

func removeStale(f *fixture) {
	old := f.put(processor.Entry{Key: "next/0", Value: []byte("a")})
	now := f.put(old)
	f.removeFails(old)
	f.removeFails(processor.Entry{Key: "next/1", Version: now.Version})
	f.wantEntries("", now)
	if err := f.store.Remove(f.ctx, f.group, processor.Entry{Key: now.Key, Version: now.Version}); err != nil {
		f.Fatalf("remove: %v", err) // the value does not matter
	}
	f.removeFails(now)
	f.putFails(now) // what was removed does not come back by its old version
	f.wantEntries("")
}

func removeWithoutVersion(f *fixture) {
	had := f.put(processor.Entry{Key: "next/0", Value: []byte("a")})
	if err := f.store.Remove(f.ctx, f.group, processor.Entry{Key: "next/0"}); err == nil {
		f.Error("removed without a version")
	}
	f.wantEntries("", had)
}

func entryVersions(f *fixture) {
	seen := map[processor.Version]bool{}
	for i := range 6 {
		entry := f.put(processor.Entry{Key: "presence/a", Value: []byte("same")})
		if seen[entry.Version] {
			f.Fatalf("round %d: version %q was there before", i, entry.Version)
		}
		seen[entry.Version] = true
		again := f.put(entry)
		if seen[again.Version] {
			f.Fatalf("round %d: version %q was there before", i, again.Version)
		}
		seen[again.Version] = true
		f.removeFails(entry)
		if err := f.store.Remove(f.ctx, f.group, again); err != nil {
			f.Fatalf("remove: %v", err)
		}
	}
}

func entryKeys(f *fixture) {
	var want []processor.Entry
	for _, key := range []string{
		"a", "A", "a/b", "a/B", "a.b", "a:b", "a-b", "a_b", "a$b", "$", "0", "a/b/c/d/e", "end.", "a/..b", ".a",
		"presence/Host-1:8080_x.y$z", "x/" + strings.Repeat("k", maxKey-2), strings.Repeat("0123456789", maxKey/10),
	} {
		want = append(want, f.put(processor.Entry{Key: key, Value: []byte("of " + key)}))
	}
	f.wantEntries("", want...)
}

func entryPrefixes(f *fixture) {
	put := map[string]processor.Entry{}
	for _, key := range []string{
		"next", "next/1", "next/10", "next/1/x", "nextx/1", "a_b/1", "axb/1", "a.b/1", "a/b/1", "A/b/1", "a$/1", "next.1/1",
	} {
		put[key] = f.put(processor.Entry{Key: key})
	}
	for prefix, keys := range map[string][]string{
		"next/":   {"next/1", "next/10", "next/1/x"},
		"next/1/": {"next/1/x"},
		"a_b/":    {"a_b/1"},
		"a.b/":    {"a.b/1"},
		"a$/":     {"a$/1"},
		"a/":      {"a/b/1"},
		"A/":      {"A/b/1"},
		"b/":      nil,
	} {
		var want []processor.Entry
		for _, key := range keys {
			want = append(want, put[key])
		}
		f.wantEntries(prefix, want...)
	}
}

func entryValues(f *fixture) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	f.wantEntries("",
		f.put(processor.Entry{Key: "none"}),
		f.put(processor.Entry{Key: "bytes", Value: all}),
		f.put(processor.Entry{Key: "text", Value: []byte("größer als %_'\"\\\x00")}),
		f.put(processor.Entry{Key: "most", Value: bytes.Repeat([]byte{0xff}, maxValue)}),
	)
}

func entryLimits(f *fixture) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", "a b", "a\x00b", "a*b", "a>b", "ä", "a\\b", "a%b", strings.Repeat("k", maxKey+1),
	} {
		if _, err := f.store.Put(f.ctx, f.group, processor.Entry{Key: key, Value: []byte("x")}); err == nil {
			f.Errorf("key %q was taken", key)
		}
	}
	big := processor.Entry{Key: "big", Value: make([]byte, maxValue+1)}
	if _, err := f.store.Put(f.ctx, f.group, big); err == nil {
		f.Error("a value beyond 16 KiB was taken")
	}
	f.wantEntries("")
}

func manyEntries(f *fixture) {
	var want []processor.Entry
	for i := range 150 {
		want = append(want, f.put(processor.Entry{Key: "presence/instance-" + partition(i), Value: []byte(partition(i))}))
	}
	f.wantEntries("presence/", want...)
}

func entriesApart(f *fixture) {
	entry := f.put(processor.Entry{Key: "0", Value: []byte("entry")})
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence = 8
	c = f.save(l, c)
	f.wantEntries("", entry)
	f.wantLeases(l)
	f.wantCheckpoints(c)
}

func (f *fixture) put(entry processor.Entry) processor.Entry {
	f.Helper()
	got, err := f.store.Put(f.ctx, f.group, entry)
	if err != nil {
		f.Fatalf("put %q in version %q: %v", entry.Key, entry.Version, err)
	}
	if got.Version == "" || got.Version == entry.Version || got.Key != entry.Key {
		f.Fatalf("put of %q in version %q gave %q in version %q", entry.Key, entry.Version, got.Key, got.Version)
	}
	got.Value = entry.Value
	return got
}

func (f *fixture) putFails(entry processor.Entry) {
	f.Helper()
	if _, err := f.store.Put(f.ctx, f.group, entry); !errors.Is(err, processor.ErrConflict) {
		f.Fatalf("put %q in version %q: %v, want ErrConflict", entry.Key, entry.Version, err)
	}
}

func (f *fixture) removeFails(entry processor.Entry) {
	f.Helper()
	if err := f.store.Remove(f.ctx, f.group, entry); !errors.Is(err, processor.ErrConflict) {
		f.Fatalf("remove %q in version %q: %v, want ErrConflict", entry.Key, entry.Version, err)
	}
}

// wantEntries wants these entries to be all that are read with the prefix.
func (f *fixture) wantEntries(prefix string, want ...processor.Entry) {
	f.Helper()
	got, err := f.store.Entries(f.ctx, f.group, prefix)
	if err != nil {
		f.Fatalf("entries %q: %v", prefix, err)
	}
	byKey := func(a, b processor.Entry) int { return strings.Compare(a.Key, b.Key) }
	slices.SortFunc(got, byKey)
	want = slices.SortedFunc(slices.Values(want), byKey)
	same := slices.EqualFunc(got, want, func(a, b processor.Entry) bool {
		return a.Key == b.Key && a.Version == b.Version && bytes.Equal(a.Value, b.Value)
	})
	if !same {
		f.Fatalf("entries %q are %v, want %v", prefix, keysOf(got), keysOf(want))
	}
}

func keysOf(entries []processor.Entry) (keys []string) {
	for _, entry := range entries {
		keys = append(keys, entry.Key+"@"+string(entry.Version))
	}
	return keys
}
