package broker

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/testkit"
)

// BenchmarkPartitions lists the 1,024 partitions of a hub, which hold some events each, for the first time after a start, and
// again.
func BenchmarkPartitions(b *testing.B) {
	dir := b.TempDir()
	start := func() (*Broker, func()) {
		store := testkit.Value(bolt.Open(bolt.Config{Path: filepath.Join(dir, "meta.db"), Log: testkit.Quiet()}))(b)
		engine := testkit.Value(disk.Open(disk.Config{Dir: dir, Log: testkit.Quiet()}))(b)
		broker := testkit.Value(Open(b.Context(), Config{Engine: engine, Meta: store, Log: testkit.Quiet()}))(b)
		return broker, func() {
			testkit.Check(b, engine.Close())
			testkit.Check(b, store.Close())
		}
	}
	yard, stop := start()
	testkit.Must(b, testkit.Err(yard.CreateHub(b.Context(), HubConfig{Name: "orders", Partitions: MaxPartitions})))
	errs := make([]error, MaxPartitions)
	parallel.Each(MaxPartitions, 128, func(i int) {
		for range 5 {
			errs[i] = errors.Join(errs[i], testkit.Err(yard.Publish(b.Context(), "orders", Target{Partition: strconv.Itoa(i)}, events(strings.Repeat("x", 1000)))))
		}
	})
	testkit.Must(b, errors.Join(errs...))
	stop()
	b.Run("first", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			yard, stop := start()
			b.StartTimer()
			testkit.Must(b, testkit.Err(yard.Partitions(b.Context(), "orders")))
			b.StopTimer()
			stop()
			b.StartTimer()
		}
	})
	b.Run("again", func(b *testing.B) {
		yard, stop := start()
		defer stop()
		testkit.Must(b, testkit.Err(yard.Partitions(b.Context(), "orders")))
		for b.Loop() {
			testkit.Must(b, testkit.Err(yard.Partitions(b.Context(), "orders")))
		}
	})
}
