package functions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

func TestRunSaysWhatIsWrong(t *testing.T) {
	ok := func(context.Context, *Batch) error { return nil }
	for name, c := range map[string]struct {
		change func(h *Host)
		want   string
	}{
		"no function":        {func(h *Host) {}, "call Handle before Run"},
		"no client":          {func(h *Host) { h.space = nil; h.Handle("f", ok, binding()) }, "there is no client"},
		"no name":            {func(h *Host) { h.Handle("", ok, binding()) }, `function "": names are 1 to 100 letters`},
		"a name with a dash": {func(h *Host) { h.Handle("a/b", ok, binding()) }, `function "a/b": names are`},
		"a long name":        {func(h *Host) { h.Handle(strings.Repeat("x", 101), ok, binding()) }, "names are 1 to 100"},
		"two dots":           {func(h *Host) { h.Handle("..", ok, binding()) }, `function "..": names are`},
		"no handler":         {func(h *Host) { h.Handle("f", nil, binding()) }, "function f: its handler is nil"},
		"no hub":             {func(h *Host) { h.Handle("f", ok, Binding{}) }, "Hub is empty"},
		"its own hub":        {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Poison: "Orders"}) }, "the function's own hub orders"},
		"two places":         {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Poison: "x", PoisonTo: &memorySink{}}) }, "choose one"},
		"a nil middleware":   {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Middleware: []Middleware{nil}}) }, "Middleware has a nil"},
		"a time-out below 0": {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Timeout: -1}) }, "Timeout is -1ns"},
		"lanes below 0":      {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Lanes: -1}) }, "not below zero"},
		"a policy":           {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Retry: Fixed(Forever, 0)}) }, "unlimited retries need a Delay"},
		"a max": {func(h *Host) {
			h.Handle("f", ok, Binding{Hub: "orders", Retry: Retry{Retries: 1, Delay: 2, Max: 1, Exponential: true}})
		}, "Max 1ns is below"},
		"a delay":        {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Retry: Fixed(1, -1)}) }, "Delay and Max"},
		"a breaker":      {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Breaker: Breaker{Failures: -1}}) }, "set Off for none"},
		"a window":       {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Breaker: Breaker{Within: -1}}) }, "Within, Probe and ProbeMax"},
		"a probe":        {func(h *Host) { h.Handle("f", ok, Binding{Hub: "orders", Breaker: Breaker{Probe: 2, ProbeMax: 1}}) }, "ProbeMax 1ns is below"},
		"two of a name":  {func(h *Host) { h.Handle("f", ok, binding()); h.Handle("f", ok, Binding{Hub: "x"}) }, "two functions are called f"},
		"two of a group": {func(h *Host) { h.Handle("f", ok, binding()); h.Handle("g", ok, Binding{Hub: "ORDERS"}) }, "share the group $Default"},
		"a URL":          {func(h *Host) { h.Handle("f", HTTP("ftp://x", HTTPConfig{}), binding()) }, "function f: "},
		"a format":       {func(h *Host) { h.Handle("f", HTTP("http://x", HTTPConfig{Format: "xml"}), binding()) }, "xml"},
		"what a processor finds": {func(h *Host) { h.Handle("bill", ok, Binding{Hub: "orders", MinBatch: 200}) },
			"function bill: processor config: MinBatch 200 is above MaxBatch 100"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				h := w.host("a", &life{})
				c.change(h)
				if err := h.Run(w.t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it says %v, want %q", err, c.want)
				}
			})
		})
	}
}

func TestAHostRunsOnce(t *testing.T) {
	bubble(t, 1, func(w *world) {
		in := w.start("a", failOn(), binding())
		after(time.Second)
		if err := in.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "has run already") {
			t.Errorf("a second Run: %v", err)
		}
		defer func() {
			testkit.That(t, recover() != nil, "Handle after Run did not panic")
			in.stop()
		}()
		in.Handle("late", failOn(), binding())
	})
}

func TestTheFirstFatalErrorStopsAllFunctionsInGoodOrder(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.space.make("other", 1)
		w.orders.SendN("0", 2)
		l := &life{}
		h := w.host("a", l)
		h.Handle("bill", w.noted(l, failOn()), binding())
		h.Handle("lost", failOn(), Binding{Hub: "nowhere", Poison: NoPoison})
		in := w.run(h, l)
		err := <-in.done
		if !errors.Is(err, hub.ErrNotFound) || !strings.HasPrefix(err.Error(), "function lost: ") {
			t.Errorf("it ended with %v", err)
		}
		leases, _ := w.store.Leases(context.Background(), testGroup)
		for _, lease := range leases {
			testkit.Equal(t, lease.Owner, "", "still owned: %+v", lease)
		}
	})
}

func TestTwoHostsWithTheSameIDAreRefused(t *testing.T) {
	bubble(t, 1, func(w *world) {
		a := w.start("a", failOn(), binding())
		after(time.Second)
		again := w.start("a", failOn(), binding())
		if err := <-again.done; !errors.Is(err, processor.ErrDuplicateID) {
			t.Errorf("it ended with %v", err)
		}
		a.stop()
	})
}

func TestHoldAndResumeAreOfFunctionsThatRun(t *testing.T) {
	bubble(t, 1, func(w *world) {
		h := w.host("a", &life{})
		h.Handle("bill", failOn(), binding())
		testkit.That(t, h.Hold(w.t.Context(), "bill", "") != nil, "held before Run")
		testkit.That(t, h.Status() == nil, "status before Run: %+v", h.Status())
		in := w.start("b", failOn(), binding())
		after(time.Second)
		testkit.That(t, in.Resume(w.t.Context(), "ship") != nil, "resumed what is not there")
		in.stop()
	})
}

// F1, F8: several functions of one host, each with its group.
func TestFunctionsOfAHostAreIndependent(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.space.make("ship-poison", 1)
		w.orders.SendN("0", 3)
		w.orders.SendN("1", 3)
		l := &life{}
		h := w.host("a", l)
		h.Handle("bill", w.noted(l, failOn("0", "1", "2")), Binding{Hub: "orders", Retry: Fixed(Forever, time.Minute)})
		var shipped atomic.Int64
		h.Handle("ship", func(_ context.Context, b *Batch) error { shipped.Add(int64(len(b.Events))); return nil }, Binding{Hub: "orders", Group: "shipping"})
		in := w.run(h, l)
		after(time.Second)
		testkit.Equal(t, shipped.Load(), 6, "shipped")
		s := in.Status()
		if len(s) != 2 || s[0].Function != "bill" || s[0].Lag != 6 || s[0].Recommended != 1 || s[0].LastError == "" ||
			s[0].LastErrorAt.IsZero() {
			t.Errorf("status %+v", s[0])
		}
		if s[1].Function != "ship" || s[1].Done != 6 || s[1].Lag != 0 || s[1].Recommended != 0 || s[1].Group != "shipping" || s[1].LastError != "" {
			t.Errorf("status %+v", s[1])
		}
		in.stop()
	})
}

// F8: a failing event slows no other partition.
func TestAFailingPartitionSlowsNoOther(t *testing.T) {
	bubble(t, 4, func(w *world) {
		b := binding()
		b.Retry = Fixed(Forever, time.Second)
		b.Breaker.Off = true
		var slowest atomic.Int64
		w.orders.Send("2", "bad")
		in := w.start("a", func(ctx context.Context, batch *Batch) error {
			for _, ev := range batch.Events {
				if took := int64(time.Since(ev.Enqueued)); batch.Partition != "2" && took > slowest.Load() {
					slowest.Store(took)
				}
			}
			time.Sleep(time.Millisecond)
			return failOn("bad")(ctx, batch)
		}, b)
		after(time.Second)
		for i := range 1200 { // 100 a second, of all four
			w.orders.Send(fmt.Sprint(i%4), "ok")
			after(10 * time.Millisecond)
		}
		after(time.Second)
		for _, p := range []string{"0", "1", "3"} {
			w.wantSaved(p, 299)
		}
		w.wantSaved("2", -1)
		if took := time.Duration(slowest.Load()); took > 10*time.Millisecond {
			t.Errorf("the slowest event of another partition took %v", took)
		}
		in.stop()
	})
}

// With Lanes a failing key holds up its lane only, and the checkpoint stays below it.
func TestAFailingKeyHoldsUpItsLaneOnly(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.Lanes, b.Retry = 4, Fixed(5, time.Minute)
		for i := range 40 {
			w.orders.Send("0", fmt.Sprintf("%d:%d", i, i))
		}
		in := w.start("a", failOn("7:7"), b)
		after(time.Second)
		if n := len(w.gotDone("0")); n < 20 || n > 39 {
			t.Errorf("%d events done", n)
		}
		if saved := w.saved("0"); saved >= 7 {
			t.Errorf("the checkpoint is %d", saved)
		}
		after(10 * time.Minute)
		w.wantAway("0/7")
		w.wantSaved("0", 39)
		in.stop()
	})
}

// Hosts come and go, and circuits with them: no event is lost, and whoever is stopped in good order
// repeats nothing.
func TestAStormOfStartsAndStops(t *testing.T) {
	bubble(t, 4, func(w *world) {
		b := binding()
		b.MaxBatch, b.Retry = 3, Fixed(1, 100*time.Millisecond)
		handle := func(ctx context.Context, batch *Batch) error {
			time.Sleep(10 * time.Millisecond)
			return failOn("7", "50")(ctx, batch)
		}
		var running []*instance
		for i := range 40 {
			if i < 25 {
				for p := range 4 {
					w.orders.Send(fmt.Sprint(p), fmt.Sprint(4*i), fmt.Sprint(4*i+1), fmt.Sprint(4*i+2), fmt.Sprint(4*i+3))
				}
			}
			running = append(running, w.start(fmt.Sprint("host", i), handle, b))
			after(time.Duration(i*i%7) * time.Second)
			if len(running) > 3 {
				running[0].stop()
				running = running[1:]
			}
			if i%10 == 9 {
				testkit.Check(t, running[0].Hold(w.t.Context(), "bill", "storm"))
				after(time.Second)
				testkit.Check(t, running[1].Resume(w.t.Context(), "bill"))
			}
		}
		after(time.Minute)
		for _, in := range running {
			in.stop()
		}
		for p := range 4 {
			id := fmt.Sprint(p)
			w.wantSaved(id, 99)
			testkit.Equal(t, len(w.gotDone(id)), 98, "partition %s", id)
		}
		testkit.Equal(t, len(w.poisonEvents()), 8, "poison events")
	})
}

// A host that is stopped while it starts ends at once.
func TestAHostCanBeStoppedAtAnyMoment(t *testing.T) {
	for n := range 40 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, space: newFakeSpace(), done: map[string][]string{}}
			w.orders, w.poison = w.space.make("orders", 3), w.space.make("bill-poison", 1)
			w.store = newStore()
			w.orders.SendN("1", 5)
			l := &life{}
			steps := 0
			in := w.host("a", l)
			ctx, cancel := context.WithCancel(t.Context())
			l.deny = func(string) error {
				if steps++; steps == n {
					cancel()
				}
				return nil
			}
			in.Handle("bill", w.noted(l, failOn("3")), binding())
			before := time.Now()
			defer time.AfterFunc(10*time.Second, cancel).Stop()
			testkit.Check(t, in.Run(ctx), "stopped at step %d", n)
			if took := time.Since(before); took > 20*time.Second {
				t.Errorf("stopped at step %d it took %v", n, took)
			}
		})
	}
}

func TestAnErrorSaysWhere(t *testing.T) {
	for want, err := range map[string]error{
		"function f: look: bad event":              &Error{Function: "f", Doing: "look", Err: errBad},
		"function f, partition 3: look: bad event": &Error{Function: "f", Partition: "3", Doing: "look", Err: errBad},
		"panicked: 7":                               &PanicError{Value: 7},
		"panicked at a.go:1: bad event":             &PanicError{Value: errBad, At: "a.go:1"},
		"1 failed, the first at index 2: bad event": &Results{Failed: map[int]error{2: errBad}},
		"2 events untouched":                        &Results{Untouched: []int{1, 2}},
	} {
		testkit.Equal(t, err.Error(), want)
	}
	if !errors.Is(&Error{Err: errBad}, errBad) || !errors.Is(&PanicError{Value: errBad}, errBad) {
		t.Error("the cause is not found")
	}
}

// OnError may panic without harm.
func TestAPanicOfOnErrorIsNoHarm(t *testing.T) {
	bubble(t, 1, func(w *world) {
		l := &life{}
		h := w.host("a", l)
		h.cfg.OnError = func(error) { panic("no") }
		b := binding()
		b.Retry = None()
		h.Handle("bill", w.noted(l, failOn("0")), b)
		w.orders.SendN("0", 2)
		in := w.run(h, l)
		after(time.Second)
		w.wantSaved("0", 1)
		w.wantAway("0/0")
		in.stop()
	})
}
