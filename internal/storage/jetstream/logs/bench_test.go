package logs

import (
	"bytes"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// BenchmarkAppend is what an append of 1 KiB costs here, beside the storage: the model keeps messages
// in memory, and answers at once.
func BenchmarkAppend(b *testing.B) {
	storage := model.New(1, model.Faults{}).Node("a")
	e := New(Config{Storage: storage, Store: metatest.NewMemory(), TendInterval: time.Hour, Log: testkit.Quiet()})
	defer storage.Close()
	defer e.Close()
	testkit.Must(b, e.Provide(b.Context(), "orders", eventlog.Shape{Partitions: 1}))
	p := testkit.Value(e.Partition(eventlog.PartitionID{Log: "orders"}))(b)
	batch := eventlog.Batch{Events: []eventlog.Event{{Message: bytes.Repeat([]byte("x"), 1024)}}}
	var under []eventlog.Receipt
	b.ReportAllocs()
	for b.Loop() {
		if len(under) == 64 {
			testkit.Must(b, testkit.Err(under[0].Wait(b.Context())))
			under = under[1:]
		}
		under = append(under, testkit.Value(p.Submit(b.Context(), batch))(b))
	}
	for _, r := range under {
		testkit.Must(b, testkit.Err(r.Wait(b.Context())))
	}
}
