package metatest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func raceTests() []test {
	return []test{
		{"of many who create one key exactly one wins", testCreateRace},
		{"of many who change one revision exactly one wins", testUpdateRace},
		{"who lost a race sees what won it", testConflictThenRead},
		{"many who count on one key lose no update", testCounter},
		{"many who write keys of their own do not disturb each other", testOwnKeys},
	}
}

// result is what one racer was told.
type result struct {
	revision meta.Revision
	err      error
}

// race lets n goroutines make their attempt as nearly at once as can be.
func race(n int, attempt func(i int) (meta.Revision, error)) []result {
	results := make([]result, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			results[i].revision, results[i].err = attempt(i)
		})
	}
	close(start)
	all.Wait()
	return results
}

// wantOneWinner gives the racer that won; all others must have met a conflict.
func wantOneWinner(t *testing.T, results []result) int {
	t.Helper()
	winner := -1
	for i, r := range results {
		switch {
		case r.err == nil && winner >= 0:
			t.Fatalf("racers %d and %d both won", winner, i)
		case r.err == nil:
			winner = i
		case !errors.Is(r.err, meta.ErrConflict):
			t.Fatalf("racer %d: %v", i, r.err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	return winner
}

func testCreateRace(t *testing.T, s meta.Store) {
	for round := range 5 {
		key := fmt.Sprintf("lease/%d", round)
		results := race(16, func(i int) (meta.Revision, error) {
			return s.CompareAndSet(t.Context(), key, 0, []byte(strconv.Itoa(i)))
		})
		winner := wantOneWinner(t, results)
		wantEntry(t, s, key, strconv.Itoa(winner), results[winner].revision)
	}
}

// Deletes and updates race for the same revision.
func testUpdateRace(t *testing.T, s meta.Store) {
	for round := range 5 {
		key := fmt.Sprintf("lease/%d", round)
		revision := mustSet(t, s, key, 0, "free")
		results := race(16, func(i int) (meta.Revision, error) {
			if i%2 == 0 {
				return 0, s.Delete(t.Context(), key, revision)
			}
			return s.CompareAndSet(t.Context(), key, revision, []byte(strconv.Itoa(i)))
		})
		if winner := wantOneWinner(t, results); winner%2 == 0 {
			wantMissing(t, s, key)
		} else {
			wantEntry(t, s, key, strconv.Itoa(winner), results[winner].revision)
		}
	}
}

// What conflicted is there to be read once the conflict was told, or who reads and tries
// again could lose to the same state for ever.
func testConflictThenRead(t *testing.T, s meta.Store) {
	const racers = 8
	var revision meta.Revision
	for round := range 12 {
		expected, deletes := revision, round%3 == 2
		seen := make([]result, racers) // what each loser read
		results := race(racers, func(i int) (revision meta.Revision, err error) {
			if deletes {
				err = s.Delete(t.Context(), "lease", expected)
			} else {
				revision, err = s.CompareAndSet(t.Context(), "lease", expected, []byte(strconv.Itoa(i)))
			}
			if errors.Is(err, meta.ErrConflict) {
				entry, readErr := s.Get(t.Context(), "lease")
				seen[i] = result{entry.Revision, readErr}
			}
			return revision, err
		})
		winner := wantOneWinner(t, results)
		revision = results[winner].revision // zero of a deletion
		for i, read := range seen {
			switch {
			case i == winner:
			case deletes && !errors.Is(read.err, meta.ErrNotFound), !deletes && (read.err != nil || read.revision != revision):
				t.Errorf("round %d: who lost at revision %d read revision %d, %v; what won is at %d (zero: deleted)",
					round, expected, read.revision, read.err, revision)
			}
		}
	}
}

func testCounter(t *testing.T, s meta.Store) {
	const writers, increments = 12, 15
	mustSet(t, s, "counter", 0, "0")
	var mu sync.Mutex
	countAt := make(map[meta.Revision]int) // what each acknowledged revision holds
	race(writers, func(int) (meta.Revision, error) {
		for range increments {
			count, revision, err := increment(t, s, "counter")
			if err != nil {
				t.Errorf("increment: %v", err)
				return 0, err
			}
			mu.Lock()
			if other, twice := countAt[revision]; twice {
				t.Errorf("revision %d was given twice, for %d and %d", revision, other, count)
			}
			countAt[revision] = count
			mu.Unlock()
		}
		return 0, nil
	})
	if entry := mustGet(t, s, "counter"); string(entry.Value) != strconv.Itoa(writers*increments) {
		t.Errorf("counted to %s, want %d", entry.Value, writers*increments)
	}
}

// increment tries until it wins, as every user of the contract must.
func increment(t *testing.T, s meta.Store, key string) (int, meta.Revision, error) {
	for {
		entry, err := s.Get(t.Context(), key)
		if err != nil {
			return 0, 0, err
		}
		count, err := strconv.Atoi(string(entry.Value))
		if err != nil {
			return 0, 0, err
		}
		revision, err := s.CompareAndSet(t.Context(), key, entry.Revision, []byte(strconv.Itoa(count+1)))
		if err == nil || !errors.Is(err, meta.ErrConflict) {
			return count + 1, revision, err
		}
	}
}

func testOwnKeys(t *testing.T, s meta.Store) {
	const writers, changes = 16, 15
	results := race(writers, func(i int) (revision meta.Revision, err error) {
		key := fmt.Sprintf("own/%02d", i)
		for n := range changes {
			before := revision
			if revision, err = s.CompareAndSet(t.Context(), key, before, []byte(strconv.Itoa(n))); err != nil {
				return 0, err
			}
			if revision <= before {
				return 0, fmt.Errorf("revision %d follows %d", revision, before)
			}
		}
		return revision, nil
	})
	for i, r := range results {
		if r.err != nil {
			t.Fatalf("writer %d: %v", i, r.err)
		}
		wantEntry(t, s, fmt.Sprintf("own/%02d", i), strconv.Itoa(changes-1), r.revision)
	}
}
