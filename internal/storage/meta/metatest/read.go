package metatest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func readTests() []test {
	return []test{
		{"a list is in byte order of the keys", testListOrder},
		{"a list holds the keys under its prefix and no others", testListPrefix},
		{"a list of nothing is empty", testListEmpty},
		{"a list shows the newest acknowledged state", testListState},
		{"a read is never older than what was acknowledged", testReadYourWrites},
	}
}

func testListOrder(t *testing.T, s meta.Store) {
	// '!' and '-' sort before '/', '0' behind it: order is by bytes, not by segments.
	keys := []string{"b", "a/b", "a", "a/b/c", "a/b!/c", "a/b0", "a-b", "B", "z/10", "z/9", "ä", "日本"}
	for _, key := range keys {
		mustSet(t, s, key, 0, key)
	}
	slices.Sort(keys)
	wantKeys(t, s, "", keys...)
}

func testListPrefix(t *testing.T, s meta.Store) {
	for _, key := range []string{"a", "a/b", "a/b/c", "a/b/d/e", "a/bc", "a.b/c", "ab/c", "b/a/b"} {
		mustSet(t, s, key, 0, key)
	}
	wantKeys(t, s, "a/", "a/b", "a/b/c", "a/b/d/e", "a/bc")
	wantKeys(t, s, "a/b/", "a/b/c", "a/b/d/e")
	wantKeys(t, s, "a/b/c/")
	wantKeys(t, s, "b/", "b/a/b")
}

func wantKeys(t *testing.T, s meta.Store, prefix string, want ...string) {
	t.Helper()
	var got []string
	for _, entry := range mustList(t, s, prefix) {
		got = append(got, entry.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list %q gave\n%q, want\n%q", prefix, got, want)
	}
	if alone, err := meta.Keys(t.Context(), s, prefix); err != nil || !slices.Equal(alone, want) {
		t.Errorf("keys %q gave\n%q, %v, want\n%q", prefix, alone, err, want)
	}
}

func testListEmpty(t *testing.T, s meta.Store) {
	wantKeys(t, s, "")
	wantKeys(t, s, "a/")
	mustDelete(t, s, "a/b", mustSet(t, s, "a/b", 0, "gone"))
	wantKeys(t, s, "")
	wantKeys(t, s, "a/")
}

func testListState(t *testing.T, s meta.Store) {
	want := make(map[string]meta.Entry)
	for i := range 40 {
		key := fmt.Sprintf("k/%02d", i)
		revision := mustSet(t, s, key, 0, "old")
		switch i % 3 {
		case 0:
			mustDelete(t, s, key, revision)
			continue
		case 1:
			revision = mustSet(t, s, key, revision, "new")
		}
		want[key] = mustGet(t, s, key)
		if want[key].Revision != revision {
			t.Fatalf("get %q gave revision %d, want %d", key, want[key].Revision, revision)
		}
	}
	got := mustList(t, s, "k/")
	if len(got) != len(want) {
		t.Errorf("%d keys are listed, want %d", len(got), len(want))
	}
	for _, entry := range got {
		if w := want[entry.Key]; string(w.Value) != string(entry.Value) || w.Revision != entry.Revision {
			t.Errorf("list gave %q = %q at revision %d, want %q at %d", entry.Key, entry.Value, entry.Revision, w.Value, w.Revision)
		}
	}
}

// One writer goes on while readers note the newest acknowledged revision before each read: what they
// get must not be older. They read a few times after each change, and not all the time: a store with
// servers in this process needs its turns.
func testReadYourWrites(t *testing.T, s meta.Store) {
	const reads = 5
	var acknowledged atomic.Uint64
	acknowledged.Store(uint64(mustSet(t, s, "k/counter", 0, "0")))
	var readers sync.WaitGroup
	wake := make([]chan struct{}, 4)
	for i := range wake {
		wake[i] = make(chan struct{}, 1)
		readers.Go(func() {
			for range wake[i] {
				for range reads {
					readBoth(t, s, &acknowledged)
				}
			}
		})
	}
	revision := meta.Revision(acknowledged.Load())
	for i := range 100 {
		next, err := s.CompareAndSet(t.Context(), "k/counter", revision, []byte(strings.Repeat("x", i)))
		if err != nil {
			t.Errorf("set: %v", err)
			break
		}
		revision = next
		acknowledged.Store(uint64(next))
		for _, reader := range wake {
			select {
			case reader <- struct{}{}:
			default: // it is at it
			}
		}
	}
	for _, reader := range wake {
		close(reader)
	}
	readers.Wait()
}

func readBoth(t *testing.T, s meta.Store, acknowledged *atomic.Uint64) {
	least := meta.Revision(acknowledged.Load())
	entry, err := s.Get(t.Context(), "k/counter")
	if err != nil || entry.Revision < least {
		t.Errorf("get gave revision %d, %v, though %d was acknowledged before", entry.Revision, err, least)
	}
	least = meta.Revision(acknowledged.Load())
	entries, err := s.List(t.Context(), "k/")
	if err != nil || len(entries) != 1 || entries[0].Revision < least {
		t.Errorf("list gave %d entries, %v, or one older than revision %d, which was acknowledged before", len(entries), err, least)
	}
}
