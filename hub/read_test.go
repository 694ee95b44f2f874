package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4
func TestReadingStartsAtAnyPosition(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(0, 3)...))
	before := next(t, open(t, y.hub, hub.ReadConfig{Partition: "0"}), 3)
	until := before[2].Enqueued
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for { // until the yard's clock shows another millisecond
		testkit.Must(t, y.hub.SendTo(ctx, "1", event.Text("tick")))
		info := bounds(t, y.hub, "1")
		if info.LastEnqueued.After(until) {
			break
		}
	}
	latest := open(t, y.hub, hub.ReadConfig{Partition: "0", From: hub.Latest})
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(3, 6)...))
	wantBodies(t, next(t, latest, 3), "3", "4", "5")
	for _, test := range []struct {
		from hub.Position
		want []string
	}{
		{hub.Earliest, []string{"0", "1", "2", "3", "4", "5"}},
		{hub.Position{}, []string{"0", "1", "2", "3", "4", "5"}},
		{hub.At(2), []string{"2", "3", "4", "5"}},
		{hub.After(2), []string{"3", "4", "5"}},
		{hub.After(-1), []string{"0", "1"}},
		{hub.AtOffset(before[1].Offset), []string{"1", "2", "3"}},
		{hub.AfterOffset(before[1].Offset), []string{"2", "3"}},
		{hub.Since(until), []string{"3", "4", "5"}},
		{hub.Since(time.Time{}), []string{"0", "1"}},
	} {
		t.Run(test.from.String(), func(t *testing.T) {
			r := open(t, y.hub, hub.ReadConfig{Partition: "0", From: test.from})
			wantBodies(t, next(t, r, len(test.want)), test.want...)
		})
	}
}

func TestInvalidPositionsAreRefused(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(0, 3)...))
	for _, from := range []hub.Position{hub.After(3), hub.At(99), hub.AfterOffset("99"), hub.AfterOffset("x'y"), hub.AtOffset("")} {
		testkit.ErrorIs(t, testkit.Err(y.hub.Open(t.Context(), hub.ReadConfig{Partition: "0", From: from})), hub.ErrOutOfRange, "%s: opened", from)
	}
}

func TestReadingNeedsAHubAGroupAndAPartition(t *testing.T) {
	y := start(t)
	for name, err := range map[string]error{
		"hub":             openError(y.client.Hub("none"), hub.ReadConfig{Partition: "0"}),
		"group":           openError(y.hub, hub.ReadConfig{Partition: "0", Group: "none"}),
		"partition":       openError(y.hub, hub.ReadConfig{Partition: "2"}),
		"latest of a hub": openError(y.client.Hub("none"), hub.ReadConfig{Partition: "0", From: hub.Latest}),
		"latest":          openError(y.hub, hub.ReadConfig{Partition: "2", From: hub.Latest}),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.ErrorIs(t, err, hub.ErrNotFound, "%s", name)
		})
	}
}

func openError(h *hub.Hub, cfg hub.ReadConfig) error {
	_, err := h.Open(context.Background(), cfg)
	return err
}

// H5: who comes with an equal or higher epoch takes the partition.
func TestAnEqualOrHigherEpochEvicts(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("x")))
	for _, later := range []int64{5, 6} {
		first := open(t, y.hub, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(5)})
		wantBodies(t, next(t, first, 1), "x")
		second := open(t, y.hub, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(later), Name: "thief"})
		err := nextError(t, first)
		wantError(t, err, hub.ErrEvicted)
		wantError(t, nextError(t, first), hub.ErrEvicted) // and stays so
		wantBodies(t, next(t, second, 1), "x")
		testkit.Must(t, second.Close(t.Context()))
	}
}

// H5, H7: who comes with a lower epoch, or none, is refused.
func TestALowerEpochIsRefused(t *testing.T) {
	y := start(t)
	open(t, y.hub, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(5)})
	for name, cfg := range map[string]hub.ReadConfig{
		"lower": {Partition: "0", Epoch: hub.Exclusive(4)}, "none": {Partition: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := y.hub.Open(t.Context(), cfg)
			if err == nil {
				err = nextError(t, r)
			}
			if !errors.Is(err, hub.ErrRefused) || errors.Is(err, hub.ErrEvicted) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wantOther := open(t, y.hub, hub.ReadConfig{Partition: "0", Group: "g"}) // other groups are others
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("x")))
	wantBodies(t, next(t, wantOther, 1), "x")
}

// H6: five plain readers, and no sixth; a slot is free once its reader is closed.
func TestTheSixthPlainReaderIsRefused(t *testing.T) {
	y := start(t)
	var readers []hub.Reader
	for range 5 {
		readers = append(readers, open(t, y.hub, hub.ReadConfig{Partition: "0"}))
	}
	wantError(t, openError(y.hub, hub.ReadConfig{Partition: "0"}), hub.ErrRefused)
	testkit.Must(t, readers[2].Close(t.Context()))
	sixth := open(t, y.hub, hub.ReadConfig{Partition: "0"})
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", event.Text("x")))
	wantBodies(t, next(t, sixth, 1), "x")
	wantBodies(t, next(t, readers[0], 1), "x")
	wantError(t, nextError(t, readers[2]), hub.ErrClosed)
	open(t, y.hub, hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(0)}) // H7: all of them go
	wantError(t, nextError(t, sixth), hub.ErrEvicted)
}

// H10
func TestInfoOfAHubAndItsPartitions(t *testing.T) {
	y := start(t)
	info, err := y.hub.Info(t.Context())
	testkit.Must(t, err)
	if info.Name != "h" || fmt.Sprint(info.Partitions) != "[0 1]" || time.Since(info.Created).Abs() > time.Hour {
		t.Errorf("the hub says %+v", info)
	}
	empty := bounds(t, y.hub, "1")
	if !empty.Empty || empty.Last != -1 || empty.Partition != "1" {
		t.Errorf("an empty partition says %+v", empty)
	}
	testkit.Must(t, y.hub.SendTo(t.Context(), "1", numbers(0, 3)...))
	full := bounds(t, y.hub, "1")
	if full.Empty || full.First != 0 || full.Last != 2 || full.LastOffset != "2" || time.Since(full.LastEnqueued).Abs() > time.Hour {
		t.Errorf("a partition with three events says %+v", full)
	}
	_, err = y.client.Hub("none").Info(t.Context())
	wantError(t, err, hub.ErrNotFound)
	wantError(t, testkit.Err(y.hub.Partition(t.Context(), "2")), hub.ErrNotFound)
}

// H10: lag is known without asking.
func TestAReaderHearsOfTheNewestEvent(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(0, 10)...))
	r := open(t, y.hub, hub.ReadConfig{Partition: "0"})
	if last, ok := r.LastEnqueued(); ok {
		t.Errorf("knows of %+v before the first event", last)
	}
	next(t, r, 1)
	last, ok := r.LastEnqueued()
	if !ok || last.Sequence != 9 || last.Offset != "9" || time.Since(last.Enqueued).Abs() > time.Hour {
		t.Errorf("knows of %+v, %v", last, ok)
	}
}

// A context that ends takes no event along.
func TestNothingIsLostWhenAContextEnds(t *testing.T) {
	y := start(t)
	r := open(t, y.hub, hub.ReadConfig{Partition: "0", Prefetch: 7})
	const count = 500
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < count && err == nil; i++ {
			err = y.hub.SendTo(context.Background(), "0", event.Text(fmt.Sprint(i)))
		}
		sent <- err
	}()
	var events []event.Event
	for i := 0; len(events) < count; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond)
		had := len(events)
		var err error
		events, err = r.Next(ctx, events, 1+i%9)
		cancel()
		switch {
		case err == nil && len(events) == had:
			t.Fatal("neither events nor an error")
		case err != nil && (len(events) != had || !errors.Is(err, context.DeadlineExceeded)):
			t.Fatalf("%d events beside %v", len(events)-had, err)
		}
	}
	testkit.Must(t, <-sent)
	wantBodies(t, events, bodies(numbers(0, count))...)
}

func TestTheIteratorGivesEventsOneByOne(t *testing.T) {
	y := start(t)
	testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(0, 250)...))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []event.Event
	var last error
	for ev, err := range y.hub.Read(ctx, hub.ReadConfig{Partition: "0"}) {
		if err != nil {
			last = err
			continue
		}
		if events = append(events, ev); len(events) == 250 {
			cancel()
		}
	}
	wantError(t, last, context.Canceled)
	wantBodies(t, events, bodies(numbers(0, 250))...)
	for range y.hub.Read(t.Context(), hub.ReadConfig{Partition: "0"}) {
		break
	}
	for _, err := range y.hub.Read(t.Context(), hub.ReadConfig{Partition: "7"}) {
		wantError(t, err, hub.ErrNotFound)
	}
}

// P9: the hub sends ahead, and goes on doing so for as long as events are taken.
func TestPrefetchNeverRunsDry(t *testing.T) {
	y := start(t)
	const count = 3000
	for from := 0; from < count; from += 500 {
		testkit.Must(t, y.hub.SendTo(t.Context(), "0", numbers(from, from+500)...))
	}
	for _, prefetch := range []int{1, 2, 3, 4, 5, 100, 0, 10000} {
		for _, most := range []int{1, 7, 1000} {
			t.Run(fmt.Sprintf("%d ahead, %d at once", prefetch, most), func(t *testing.T) {
				r := open(t, y.hub, hub.ReadConfig{Partition: "0", Prefetch: prefetch})
				var events []event.Event
				for len(events) < count/(1+1000/most) {
					had := len(events)
					var err error
					events, err = r.Next(t.Context(), events, most)
					testkit.Must(t, err)
					if given := len(events) - had; given < 1 || given > most {
						t.Fatalf("%d events at once", given)
					}
				}
				wantBodies(t, events, bodies(numbers(0, len(events)))...)
			})
		}
	}
}
