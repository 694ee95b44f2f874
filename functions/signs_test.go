package functions

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// With retries for ever a line now and then is the only sign of life, whoever else is told.
func TestFailedCallsAreLoggedNowAndThen(t *testing.T) {
	bubble(t, 2, func(w *world) {
		b := binding()
		b.Retry, b.Breaker.Off = Fixed(Forever, 3*time.Second), true
		w.orders.SendN("0", 8)
		w.orders.SendN("1", 8)
		in := w.start("a", failOn("5"), b)
		after(500 * time.Millisecond)
		if got := strings.Count(w.logged(), "a call failed"); got != 1 {
			t.Fatalf("%d lines for the first failures:\n%s", got, w.logged())
		}
		for _, want := range []string{"level=WARN", "function=bill", "hub=orders", "partition=", "first=0", "attempt=1", `error="bad event 5"`} {
			testkit.That(t, strings.Contains(w.logged(), want), "no %s in:\n%s", want, w.logged())
		}
		after(3 * time.Minute)
		if got := strings.Count(w.logged(), "a call failed"); got < 3 || got > 4 {
			t.Errorf("%d lines in three minutes", got)
		}
		if !regexp.MustCompile(`untold=[34]\d\b`).MatchString(w.logged()) {
			t.Errorf("it does not say how many there were since:\n%s", w.logged())
		}
		in.stop()
	})
}

func TestLogLinesSayEachThingOnce(t *testing.T) {
	bubble(t, 1, func(w *world) {
		l := &life{}
		log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h := NewHostIn(w.space.view(l), Config{ID: "a", Store: &store{w.store, l}, Log: log})
		h.Handle("bill", w.noted(l, failOn("0")), Binding{Hub: "orders", Retry: None()})
		w.orders.SendN("0", 2)
		in := w.run(h, l)
		after(5 * time.Second)
		testkit.Must(t, in.Hold(t.Context(), "bill", "maintenance"))
		after(5 * time.Second)
		in.stop()
		for line := range strings.Lines(w.logged()) {
			for _, key := range []string{" function=", " hub=", " group="} {
				testkit.Equal(t, strings.Count(line, key), 1, "times%s in: %s", key, line)
			}
		}
		if !strings.Contains(w.logged(), "a partition is ours") || !strings.Contains(w.logged(), "circuit changed") {
			t.Errorf("what was to be seen is not there:\n%s", w.logged())
		}
	})
}

// F4: while poison cannot be written, the status and OnError say what the partition waits for, and
// what to do about it.
func TestWhatAPartitionWaitsForIsShown(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.Send("0", "bad", "ok")
		b := binding()
		b.MaxBatch, b.Retry = 1, None()
		gate := make(chan struct{})
		l := &life{}
		h := w.host("a", l)
		h.Handle("bill", w.noted(l, func(ctx context.Context, batch *Batch) error { <-gate; return failOn("bad")(ctx, batch) }), b)
		in := w.run(h, l)
		after(time.Second)
		w.space.remove("bill-poison")
		close(gate)
		after(time.Minute)
		const want = "hub bill-poison does not exist: create it with: eventyard hub create bill-poison --partitions 1"
		if got := in.Status()[0].Waiting; got != want {
			t.Errorf("it waits for %q", got)
		}
		if !w.reported(hub.ErrNotFound) || !strings.HasSuffix(w.errs[len(w.errs)-1].Error(), "waits: "+want) {
			t.Errorf("told of %v", w.errs)
		}
		w.poison = w.space.make("bill-poison", 1)
		w.poison.SetDown(errors.New("disk full"))
		after(time.Minute)
		if got := in.Status()[0].Waiting; got != "hub bill-poison takes no poison: disk full" {
			t.Errorf("it waits for %q", got)
		}
		w.poison.SetDown(nil)
		after(time.Minute)
		if got := in.Status()[0].Waiting; got != "" {
			t.Errorf("it still waits for %q", got)
		}
		w.wantAway("0/0")
		w.wantSaved("0", 1)
		in.stop()
	})
}
