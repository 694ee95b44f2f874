package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Durable compare-and-sets of 300 bytes, each writer on a key of its own, in a store of
// ten thousand entries.
func BenchmarkCompareAndSet(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := openStore(b, Config{})
			fill(b, s, 10_000)
			latencies := make([][]time.Duration, writers)
			var all sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				all.Go(func() { latencies[w] = benchWriter(b, s, w, b.N/writers+1) })
			}
			all.Wait()
			b.StopTimer()
			sorted := slices.Sorted(slices.Values(slices.Concat(latencies...)))
			b.ReportMetric(float64(len(sorted))/b.Elapsed().Seconds(), "changes/s")
			b.ReportMetric(float64(sorted[len(sorted)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// fill stores entries, many in one commit.
func fill(b *testing.B, s *Store, entriesBucket int) {
	s.commit.Lock()
	defer s.commit.Unlock()
	var changes []*change
	for i := range entriesBucket {
		changes = append(changes, &change{key: fmt.Sprintf("facts/%05d", i), record: newRecord(make([]byte, 300))})
	}
	s.commitChanges(changes)
	testkit.Must(b, changes[0].err)
}

func benchWriter(b *testing.B, s *Store, w, changes int) []time.Duration {
	key, value := fmt.Sprintf("facts/%05d/lease", w*71), make([]byte, 300) // far apart
	latencies := make([]time.Duration, 0, changes)
	var revision meta.Revision
	for range changes {
		begun := time.Now()
		next, err := s.CompareAndSet(context.Background(), key, revision, value)
		if err != nil {
			b.Error(err)
			return latencies
		}
		revision = next
		latencies = append(latencies, time.Since(begun))
	}
	return latencies
}

func BenchmarkGet(b *testing.B) {
	s := openStore(b, Config{NoSync: true})
	fill(b, s, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, testkit.Err(s.Get(b.Context(), "facts/05000")))
	}
}

// What watchers cost the writer: a hundred of them, one change.
func BenchmarkChangeWithWatchers(b *testing.B) {
	s := openStore(b, Config{NoSync: true})
	for range 100 {
		watcher, err := s.Watch(b.Context(), "")
		testkit.Must(b, err)
		testkit.Must(b, testkit.Err(watcher.Next()))
	}
	var revision meta.Revision
	for b.Loop() {
		revision = set(b, s, "a", revision, "value")
	}
}

// What Open costs by looking at every page before bbolt trusts them.
func BenchmarkOpen(b *testing.B) {
	for _, entries := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("facts=%d", entries), func(b *testing.B) {
			path := storePath(b)
			s := openStore(b, Config{Path: path, NoSync: true})
			fill(b, s, entries)
			testkit.Must(b, s.Close())
			b.Run("inspect", func(b *testing.B) {
				for b.Loop() {
					db, err := openToRead(path)
					testkit.Must(b, err)
					testkit.Must(b, errors.Join(inspect(db), db.Close()))
				}
			})
			b.Run("whole", func(b *testing.B) {
				for b.Loop() {
					s, err := Open(Config{Path: path})
					testkit.Must(b, err)
					testkit.Must(b, s.Close())
				}
			})
		})
	}
}
