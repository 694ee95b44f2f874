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

var factTests = []test{
	{"a group that did nothing has no facts", noFacts},
	{"a fact is put, read, changed and removed", factLife},
	{"putting a fact that exists without its version is a conflict", putExisting},
	{"putting in an old version is a conflict", putStale},
	{"putting in a version of what does not exist is a conflict", putMissing},
	{"removing in an old version, or what does not exist, is a conflict", removeStale},
	{"removing without a version is refused", removeWithoutVersion},
	{"versions never come back, not even after a removal", factVersions},
	{"keys of all letters that are allowed are told apart", factKeys},
	{"prefixes end at a slash and have no wildcards", factPrefixes},
	{"values are bytes of any kind, from none to 16 KiB", factValues},
	{"keys and values beyond the limits are refused", factLimits},
	{"many facts are read", manyFacts},
	{"facts, leases and checkpoints are apart", factsApart},
}

func noFacts(f *fixture) {
	f.wantFacts("")
	f.wantFacts("presence/")
}

func factLife(f *fixture) {
	first := f.put(processor.Fact{Key: "presence/a", Value: []byte(`{"nonce":1}`)})
	f.wantFacts("", first)
	second := f.put(processor.Fact{Key: first.Key, Value: []byte(`{"nonce":2}`), Version: first.Version})
	f.wantFacts("", second)
	if err := f.store.Remove(f.ctx, f.group, second); err != nil {
		f.Fatalf("remove: %v", err)
	}
	f.wantFacts("")
	f.wantFacts("", f.put(processor.Fact{Key: first.Key, Value: []byte("3")}))
}

func putExisting(f *fixture) {
	had := f.put(processor.Fact{Key: "next/0", Value: []byte("a")})
	f.putFails(processor.Fact{Key: "next/0", Value: []byte("b")})
	f.wantFacts("", had)
}

func putStale(f *fixture) {
	old := f.put(processor.Fact{Key: "next/0", Value: []byte("a")})
	now := f.put(old) // the same value is a new version
	f.putFails(processor.Fact{Key: "next/0", Value: []byte("b"), Version: old.Version})
	f.wantFacts("", now)
}

func putMissing(f *fixture) {
	had := f.put(processor.Fact{Key: "next/0", Value: []byte("a")})
	f.putFails(processor.Fact{Key: "next/1", Value: []byte("a"), Version: had.Version})
	f.wantFacts("", had)
}

func removeStale(f *fixture) {
	old := f.put(processor.Fact{Key: "next/0", Value: []byte("a")})
	now := f.put(old)
	f.removeFails(old)
	f.removeFails(processor.Fact{Key: "next/1", Version: now.Version})
	f.wantFacts("", now)
	if err := f.store.Remove(f.ctx, f.group, processor.Fact{Key: now.Key, Version: now.Version}); err != nil {
		f.Fatalf("remove: %v", err) // the value does not matter
	}
	f.removeFails(now)
	f.putFails(now) // what was removed does not come back by its old version
	f.wantFacts("")
}

func removeWithoutVersion(f *fixture) {
	had := f.put(processor.Fact{Key: "next/0", Value: []byte("a")})
	if err := f.store.Remove(f.ctx, f.group, processor.Fact{Key: "next/0"}); err == nil {
		f.Error("removed without a version")
	}
	f.wantFacts("", had)
}

func factVersions(f *fixture) {
	seen := map[processor.Version]bool{}
	for i := range 6 {
		fact := f.put(processor.Fact{Key: "presence/a", Value: []byte("same")})
		if seen[fact.Version] {
			f.Fatalf("round %d: version %q was there before", i, fact.Version)
		}
		seen[fact.Version] = true
		again := f.put(fact)
		if seen[again.Version] {
			f.Fatalf("round %d: version %q was there before", i, again.Version)
		}
		seen[again.Version] = true
		f.removeFails(fact)
		if err := f.store.Remove(f.ctx, f.group, again); err != nil {
			f.Fatalf("remove: %v", err)
		}
	}
}

func factKeys(f *fixture) {
	var want []processor.Fact
	for _, key := range []string{
		"a", "A", "a/b", "a/B", "a.b", "a:b", "a-b", "a_b", "a$b", "$", "0", "a/b/c/d/e", "end.", "a/.", "a/..", ".a",
		"presence/Host-1:8080_x.y$z", "x/" + strings.Repeat("k", maxKey-2), strings.Repeat("0123456789", maxKey/10),
	} {
		want = append(want, f.put(processor.Fact{Key: key, Value: []byte("of " + key)}))
	}
	f.wantFacts("", want...)
}

func factPrefixes(f *fixture) {
	put := map[string]processor.Fact{}
	for _, key := range []string{
		"next", "next/1", "next/10", "next/1/x", "nextx/1", "a_b/1", "axb/1", "a.b/1", "a/b/1", "A/b/1", "a$/1", "next.1/1",
	} {
		put[key] = f.put(processor.Fact{Key: key})
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
		var want []processor.Fact
		for _, key := range keys {
			want = append(want, put[key])
		}
		f.wantFacts(prefix, want...)
	}
}

func factValues(f *fixture) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	f.wantFacts("",
		f.put(processor.Fact{Key: "none"}),
		f.put(processor.Fact{Key: "bytes", Value: all}),
		f.put(processor.Fact{Key: "text", Value: []byte("größer als %_'\"\\\x00")}),
		f.put(processor.Fact{Key: "most", Value: bytes.Repeat([]byte{0xff}, maxValue)}),
	)
}

func factLimits(f *fixture) {
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", "a b", "a\x00b", "a*b", "a>b", "ä", "a\\b", "a%b", strings.Repeat("k", maxKey+1),
	} {
		if _, err := f.store.Put(f.ctx, f.group, processor.Fact{Key: key, Value: []byte("x")}); err == nil {
			f.Errorf("key %q was taken", key)
		}
	}
	big := processor.Fact{Key: "big", Value: make([]byte, maxValue+1)}
	if _, err := f.store.Put(f.ctx, f.group, big); err == nil {
		f.Error("a value beyond 16 KiB was taken")
	}
	f.wantFacts("")
}

func manyFacts(f *fixture) {
	var want []processor.Fact
	for i := range 150 {
		want = append(want, f.put(processor.Fact{Key: "presence/instance-" + partition(i), Value: []byte(partition(i))}))
	}
	f.wantFacts("presence/", want...)
}

func factsApart(f *fixture) {
	fact := f.put(processor.Fact{Key: "0", Value: []byte("fact")})
	l := f.claim(lease("0", "a", 1))
	c := f.begin(l)
	c.Sequence = 8
	c = f.save(l, c)
	f.wantFacts("", fact)
	f.wantLeases(l)
	f.wantCheckpoints(c)
}

func (f *fixture) put(fact processor.Fact) processor.Fact {
	f.Helper()
	got, err := f.store.Put(f.ctx, f.group, fact)
	if err != nil {
		f.Fatalf("put %q in version %q: %v", fact.Key, fact.Version, err)
	}
	if got.Version == "" || got.Version == fact.Version || got.Key != fact.Key {
		f.Fatalf("put of %q in version %q gave %q in version %q", fact.Key, fact.Version, got.Key, got.Version)
	}
	got.Value = fact.Value
	return got
}

func (f *fixture) putFails(fact processor.Fact) {
	f.Helper()
	if _, err := f.store.Put(f.ctx, f.group, fact); !errors.Is(err, processor.ErrConflict) {
		f.Fatalf("put %q in version %q: %v, want ErrConflict", fact.Key, fact.Version, err)
	}
}

func (f *fixture) removeFails(fact processor.Fact) {
	f.Helper()
	if err := f.store.Remove(f.ctx, f.group, fact); !errors.Is(err, processor.ErrConflict) {
		f.Fatalf("remove %q in version %q: %v, want ErrConflict", fact.Key, fact.Version, err)
	}
}

// wantFacts wants these facts to be all that are read with the prefix.
func (f *fixture) wantFacts(prefix string, want ...processor.Fact) {
	f.Helper()
	got, err := f.store.Facts(f.ctx, f.group, prefix)
	if err != nil {
		f.Fatalf("facts %q: %v", prefix, err)
	}
	byKey := func(a, b processor.Fact) int { return strings.Compare(a.Key, b.Key) }
	slices.SortFunc(got, byKey)
	want = slices.SortedFunc(slices.Values(want), byKey)
	same := slices.EqualFunc(got, want, func(a, b processor.Fact) bool {
		return a.Key == b.Key && a.Version == b.Version && bytes.Equal(a.Value, b.Value)
	})
	if !same {
		f.Fatalf("facts %q are %v, want %v", prefix, keysOf(got), keysOf(want))
	}
}

func keysOf(facts []processor.Fact) (keys []string) {
	for _, fact := range facts {
		keys = append(keys, fact.Key+"@"+string(fact.Version))
	}
	return keys
}
