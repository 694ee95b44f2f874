package hub_test

import (
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/servertest"
)

// BenchmarkNext reads events of 1 KiB from a yard in the process, a hundred at a time.
func BenchmarkNext(b *testing.B) {
	h := benchHub(b)
	const stored = 20000
	batch := make([]event.Event, 500)
	for i := range batch {
		batch[i] = event.Bytes(make([]byte, 1024))
	}
	for range stored / len(batch) {
		testkit.Must(b, h.Send(b.Context(), batch...))
	}
	b.ReportAllocs()
	b.ResetTimer()
	var events []event.Event
	for left := b.N; left > 0; {
		r, err := h.Open(b.Context(), hub.ReadConfig{Partition: "0"})
		testkit.Must(b, err)
		for n := min(left, stored); n > 0; n, left = n-len(events), left-len(events) {
			events, err = r.Next(b.Context(), events[:0], min(n, 100))
			testkit.Must(b, err)
		}
		testkit.Must(b, r.Close(b.Context()))
	}
}

// BenchmarkSend sends events of 1 KiB by many goroutines, one at a time each.
func BenchmarkSend(b *testing.B) {
	h := benchHub(b)
	ev := event.Bytes(make([]byte, 1024))
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			testkit.Check(b, h.Send(b.Context(), ev))
		}
	})
}

func benchHub(b *testing.B) *hub.Hub {
	y := servertest.Start(b)
	y.Hub(b, "b", 1)
	return y.Dial(b).Hub("b")
}
