package bolt

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/meta"
)

// Durable compare-and-sets of 300 bytes, each writer on a key of its own.
func BenchmarkCompareAndSet(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := openStore(b, Config{})
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

func benchWriter(b *testing.B, s *Store, w, changes int) []time.Duration {
	key, value := fmt.Sprintf("leases/%04d", w), make([]byte, 300)
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
	for i := range 1000 {
		set(b, s, fmt.Sprintf("leases/%04d", i), 0, string(make([]byte, 300)))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), "leases/0500"); err != nil {
			b.Fatal(err)
		}
	}
}

// What a watcher sees of a change costs the writer: a hundred watchers, one change.
func BenchmarkChangeWithWatchers(b *testing.B) {
	s := openStore(b, Config{NoSync: true})
	for range 100 {
		watcher, err := s.Watch(b.Context(), "")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := watcher.Next(); err != nil {
			b.Fatal(err)
		}
	}
	var revision meta.Revision
	for b.Loop() {
		revision = set(b, s, "a", revision, "value")
	}
}
