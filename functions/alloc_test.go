package functions

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor/memory"
)

func eventsOf(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.Text("reading")
		events[i].Sequence = int64(i)
	}
	return events
}

// F8: a call that succeeds costs the same few allocations for one event and for a thousand, with
// Each, too.
func TestACallThatSucceedsAllocatesNothingPerEvent(t *testing.T) {
	for name, handle := range map[string]Handler{
		"a batch": func(context.Context, *Batch) error { return nil },
		"each":    Each(func(context.Context, event.Event) error { return nil }),
	} {
		f := &function{Binding: Binding{Timeout: time.Minute}, handler: handle, log: slog.New(slog.DiscardHandler)}
		cost := func(n int) float64 {
			b := &Batch{Events: eventsOf(n), Attempt: 1}
			return testing.AllocsPerRun(100, func() {
				if out := f.invoke(t.Context(), b, nil); !out.done() || !f.allOurs(b.Events) {
					t.Error("it failed")
				}
			})
		}
		one, thousand := cost(1), cost(1000)
		if thousand > one+1 || one > 12 {
			t.Errorf("%s: %v allocations for one event, %v for a thousand", name, one, thousand)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for name, handle := range map[string]Handler{
		"batch": func(context.Context, *Batch) error { return nil },
		"each":  Each(func(context.Context, event.Event) error { return nil }),
	} {
		b.Run(name, func(b *testing.B) {
			f := &function{Binding: Binding{Timeout: time.Minute}, handler: handle, log: slog.New(slog.DiscardHandler)}
			batch := &Batch{Events: eventsOf(100), Attempt: 1}
			b.ReportAllocs()
			for b.Loop() {
				f.invoke(b.Context(), batch, nil)
			}
		})
	}
}

// BenchmarkHost is the whole way of 100,000 events from a hub in memory through a host with the
// default binding.
func BenchmarkHost(b *testing.B) {
	const total = 100_000
	space := newFakeSpace()
	orders := space.make("orders", 4)
	space.make("bill-poison", 1)
	for i := range total {
		orders.Send(strconv.Itoa(i%4), "reading")
	}
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		seen := atomic.Int64{}
		h := NewHostIn(space.view(&life{}), Config{Store: memory.New(), Log: slog.New(slog.DiscardHandler)})
		h.Handle("bill", func(_ context.Context, batch *Batch) error {
			if seen.Add(int64(len(batch.Events))) == total {
				cancel()
			}
			return nil
		}, Binding{Hub: "orders"})
		testkit.Must(b, h.Run(ctx))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/total, "ns/event")
}
