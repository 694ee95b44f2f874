package disk_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

func benchEngine(b *testing.B, mode disk.SyncMode) *disk.Engine {
	b.Helper()
	e, err := disk.Open(disk.Config{Dir: b.TempDir(), Sync: mode, Log: testkit.Quiet()})
	testkit.Must(b, err)
	b.Cleanup(func() { e.Close() })
	return e
}

func benchBatch(events int) eventlog.Batch {
	batch := eventlog.Batch{Events: make([]eventlog.Event, events)}
	for i := range batch.Events {
		batch.Events[i].Message = make([]byte, 1024)
	}
	return batch
}

// BenchmarkAppend appends batches of 100 events of 1 KiB from one goroutine for each of
// 16 partitions; allocations are per batch.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.OS} {
		b.Run(mode.String(), func(b *testing.B) {
			e := benchEngine(b, mode)
			batch := benchBatch(100)
			b.SetBytes(int64(batch.Bytes()))
			b.ReportAllocs()
			appendAll(b, e, 16, 16, batch)
		})
	}
}

// BenchmarkAppendSingle appends single events from some writers to some partitions.
func BenchmarkAppendSingle(b *testing.B) {
	for _, c := range []struct{ writers, partitions int }{{1, 1}, {64, 1}, {64, 16}} {
		b.Run(fmt.Sprintf("%dto%d", c.writers, c.partitions), func(b *testing.B) {
			e := benchEngine(b, disk.Always)
			b.ReportAllocs()
			appendAll(b, e, c.writers, c.partitions, benchBatch(1))
		})
	}
}

func appendAll(b *testing.B, e *disk.Engine, writers, partitions int, batch eventlog.Batch) {
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		p, err := e.Partition(eventlog.PartitionID{Log: "bench-1", Number: w % partitions})
		testkit.Must(b, err)
		share := b.N / writers
		if w < b.N%writers {
			share++
		}
		wg.Go(func() {
			for range share {
				if _, err := eventlog.Append(context.Background(), p, batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkRead reads events of 1 KiB back through a cursor; one operation is a batch of 100.
func BenchmarkRead(b *testing.B) {
	e := benchEngine(b, disk.OS)
	p, err := e.Partition(eventlog.PartitionID{Log: "bench-1"})
	testkit.Must(b, err)
	batch := benchBatch(100)
	for range 5000 {
		testkit.Must(b, testkit.Err(eventlog.Append(b.Context(), p, batch)))
	}
	b.SetBytes(int64(batch.Bytes()))
	b.ReportAllocs()
	b.ResetTimer()
	c, err := p.Cursor(b.Context(), eventlog.Earliest())
	testkit.Must(b, err)
	for range b.N {
		run, err := c.TryNext(b.Context())
		if err == nil && len(run.Events) == 0 {
			c.Close()
			c, err = p.Cursor(b.Context(), eventlog.Earliest())
		}
		testkit.Must(b, err)
	}
}
