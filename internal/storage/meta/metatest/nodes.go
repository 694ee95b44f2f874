package metatest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// RunNodes tests what holds between two processes that share entries. Open gives two new stores over
// the same entries, which are empty, and arranges for their closing by t.Cleanup.
func RunNodes(t *testing.T, open func(t *testing.T) (here, there meta.Store)) {
	tests := []struct {
		name string
		run  func(t *testing.T, here, there meta.Store)
	}{
		{"what was acknowledged here is read there after Fresh", testFreshReads},
		{"of two who write and then look afresh at least one sees the other", testFreshBothWays},
		{"of rivals at two nodes exactly one wins, and the others see what won", testNodeRivals},
		{"who counts at two nodes loses no update", testNodeCounter},
		{"a key deleted here is created there", testNodeRecreate},
		{"a watch here tells what is changed there", testNodeWatch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			here, there := open(t)
			test.run(t, here, there)
		})
	}
}

// nodeKeys are of different kinds, which a store may keep apart.
var nodeKeys = []string{"hubs/orders", "groups/log/billing", "records/log/id/lease/0", "producers/log/0", "grid/cursors/a"}

func under(key string) (prefix string) { return key[:strings.LastIndexByte(key, '/')+1] }

func mustFresh(t *testing.T, s meta.Store, prefix string) {
	t.Helper()
	if err := s.Fresh(impatient(t), prefix); err != nil {
		t.Fatalf("fresh %q: %v", prefix, err)
	}
}

func testFreshReads(t *testing.T, here, there meta.Store) {
	for _, key := range nodeKeys {
		for _, prefix := range []string{under(key), ""} {
			revision := mustSet(t, here, key, 0, "one")
			mustFresh(t, there, prefix)
			wantEntry(t, there, key, "one", revision)
			revision = mustSet(t, there, key, revision, "two")
			mustFresh(t, here, prefix)
			wantEntry(t, here, key, "two", revision)
			mustDelete(t, here, key, revision)
			mustFresh(t, there, prefix)
			wantMissing(t, there, key)
			wantKeys(t, there, "")
		}
	}
}

// This is how records are protected against the deletion of what they are of.
func testFreshBothWays(t *testing.T, here, there meta.Store) {
	stores := []meta.Store{here, there}
	for round := range 20 {
		keys := []string{fmt.Sprintf("hubs/%d", round), fmt.Sprintf("records/%d/id/lease/0", round)}
		seen := make([]bool, len(keys))
		results := race(len(keys), func(i int) (meta.Revision, error) {
			revision, err := stores[i].CompareAndSet(t.Context(), keys[i], 0, []byte("mine"))
			if err == nil {
				err = stores[i].Fresh(t.Context(), under(keys[1-i]))
			}
			if err != nil {
				return 0, err
			}
			_, err = stores[i].Get(t.Context(), keys[1-i])
			seen[i] = err == nil
			return revision, nil
		})
		for _, r := range results {
			if r.err != nil {
				t.Fatal(r.err)
			}
		}
		if !seen[0] && !seen[1] {
			t.Fatalf("round %d: neither side saw the other", round)
		}
	}
}

func testNodeRivals(t *testing.T, here, there meta.Store) {
	stores := []meta.Store{here, there}
	var revision meta.Revision
	for round := range 12 {
		mustFresh(t, here, "")
		mustFresh(t, there, "")
		seen := make([]meta.Entry, 8)
		results := race(len(seen), func(i int) (meta.Revision, error) {
			s := stores[i%2]
			won, err := s.CompareAndSet(t.Context(), "records/log/id/lease/0", revision, fmt.Append(nil, i))
			if errors.Is(err, meta.ErrConflict) {
				seen[i] = mustGet(t, s, "records/log/id/lease/0")
			}
			return won, err
		})
		winner := wantOneWinner(t, results)
		revision = results[winner].revision
		for i, entry := range seen {
			if i != winner && (entry.Revision != revision || string(entry.Value) != fmt.Sprint(winner)) {
				t.Errorf("round %d: racer %d lost and read %q at %d, racer %d won at %d", round, i, entry.Value, entry.Revision, winner, revision)
			}
		}
	}
}

func testNodeCounter(t *testing.T, here, there meta.Store) {
	const writers, increments = 6, 10
	stores := []meta.Store{here, there}
	mustSet(t, here, "records/log/id/count", 0, "0")
	mustFresh(t, there, "")
	for _, r := range race(writers, func(i int) (revision meta.Revision, err error) {
		for range increments {
			if _, revision, err = increment(t, stores[i%2], "records/log/id/count"); err != nil {
				return 0, err
			}
		}
		return revision, nil
	}) {
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	mustFresh(t, here, "")
	if entry := mustGet(t, here, "records/log/id/count"); string(entry.Value) != fmt.Sprint(writers*increments) {
		t.Errorf("counted to %s, want %d", entry.Value, writers*increments)
	}
}

// The other node may not have heard of the deletion: creating is right all the same.
func testNodeRecreate(t *testing.T, here, there meta.Store) {
	for range 10 {
		for _, key := range nodeKeys {
			first := mustSet(t, here, key, 0, "one")
			mustDelete(t, here, key, first)
			second := mustSet(t, there, key, 0, "two")
			if second <= first {
				t.Fatalf("%s was created again at %d after %d", key, second, first)
			}
			mustDelete(t, there, key, second)
		}
	}
}

func testNodeWatch(t *testing.T, here, there meta.Store) {
	all := newFollower(t, here, "")
	all.next()
	for _, key := range nodeKeys {
		f := newFollower(t, here, under(key))
		f.next()
		first := mustSet(t, there, key, 0, "one")
		f.until(key, first)
		f.want(key, "one", first)
		second := mustSet(t, there, key, first, "two")
		f.until(key, second)
		f.want(key, "two", second)
		mustDelete(t, there, key, second)
		f.until(key, second+1)
		f.wantDeleted(key, second)
		all.until(key, second+1)
		all.wantDeleted(key, second)
	}
}
