package functions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// outage is a handler whose dependency can be down. It is used by several hosts at once.
type outage struct{ down atomic.Bool }

func (o *outage) handle(context.Context, *Batch) error {
	if o.down.Load() {
		time.Sleep(500 * time.Millisecond) // so that instances can hear of each other
		return errBad
	}
	return nil
}

// F5, F7: more than N failures over all instances open the circuit in all of them; from then on
// nothing is called, put away or checkpointed, and after resuming each goes on at exactly the right
// event.
func TestTheCircuitOpensInAllHostsAndNothingMoreIsPutAway(t *testing.T) {
	bubble(t, 6, func(w *world) {
		b := binding()
		b.MaxBatch, b.Retry = 1, None()
		b.Breaker = Breaker{Failures: 20, Within: 30 * time.Second}
		var dep outage
		var hosts []*instance
		for _, id := range []string{"a", "b", "c"} {
			hosts = append(hosts, w.start(id, dep.handle, b))
		}
		after(2 * time.Minute)
		for i := range 100 {
			w.orders.Send(fmt.Sprint(i%6), "well")
		}
		after(time.Second)
		dep.down.Store(true)
		for i := range 600 {
			w.orders.Send(fmt.Sprint(i%6), "ill")
		}
		after(time.Minute)
		w.wantState("open")
		away, calls := w.poisonEvents(), len(w.gotCalls())
		testkit.MustEqual(t, len(away), 20, "events put away") // R7
		var saved []int64
		for p := range 6 {
			saved = append(saved, w.saved(fmt.Sprint(p)))
		}
		after(time.Hour)
		if n := len(w.poisonEvents()); n != len(away) {
			t.Errorf("%d events more were put away while it was open", n-len(away))
		}
		if n := len(w.gotCalls()); n != calls {
			t.Errorf("%d calls while it was open", n-calls)
		}
		for p := range 6 {
			if got := w.saved(fmt.Sprint(p)); got != saved[p] {
				t.Errorf("the checkpoint of %d moved from %d to %d", p, saved[p], got)
			}
		}
		for _, h := range hosts {
			s := h.Status()[0]
			if s.Circuit.State != "open" || s.Circuit.Incident == "" || !strings.Contains(s.Circuit.Reason, "within 30s") ||
				len(s.Circuit.Errors) == 0 || len(s.Partitions) != 2 {
				t.Errorf("status %+v", s)
			}
		}
		dep.down.Store(false)
		testkit.Must(t, hosts[1].Resume(w.t.Context(), "bill"))
		after(time.Minute)
		w.wantState("closed")
		for p := range 6 {
			id := fmt.Sprint(p)
			// Each goes on behind its checkpoint; what was put away just before the circuit opened
			// is not called again.
			at := saved[p] + 1
			for slices.ContainsFunc(away, func(l poison.Record) bool { return l.Partition == id && l.Sequence == at }) {
				at++
			}
			next := w.gotCalls()[calls:]
			first := slices.IndexFunc(next, func(c string) bool { return strings.HasPrefix(c, id+":") })
			if want := fmt.Sprintf("%s:%d ", id, at); !strings.HasPrefix(next[first], want) {
				t.Errorf("partition %s went on with %s, want %s", id, next[first], want)
			}
			w.wantSaved(id, int64(len(w.orders.All(id)))-1)
		}
		if n := len(w.poisonEvents()); n != len(away) {
			t.Errorf("%d events more were put away after it was closed", n-len(away))
		}
		total := 0
		for p := range 6 {
			total += len(w.gotDone(fmt.Sprint(p)))
		}
		testkit.Equal(t, total, 700-len(away), "events done and %d put away of 700", len(away))
		for _, h := range hosts {
			h.stop()
		}
	})
}

// F5: the event that trips it stays undone, and has a fresh round of retries; its attempts go on.
func TestTheEventThatTripsTheCircuitStaysUndone(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.MaxBatch, b.Retry = 1, Fixed(1, time.Second)
		b.Breaker = Breaker{Failures: 1}
		w.orders.Send("0", "ok", "bad", "bad", "ok")
		in := w.start("a", failOn("bad"), b)
		after(time.Minute)
		w.wantState("open")
		w.wantCalls("0:0 1", "0:1 1", "0:1 2", "0:2 1", "0:2 2")
		w.wantAway("0/1")
		w.wantSaved("0", 1)
		if work := w.work("0"); len(work.Units) != 1 || work.Units[0].Used != 0 || work.Units[0].Attempts != 2 {
			t.Errorf("the work is %s", show(work))
		}
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(time.Minute)
		w.wantCalls("0:0 1", "0:1 1", "0:1 2", "0:2 1", "0:2 2", "0:2 3", "0:2 4", "0:3 1")
		w.wantAway("0/1", "0/2")
		w.wantSaved("0", 3)
		in.stop()
	})
}

// F5: the same across a restart while it is open.
func TestAnOpenCircuitSurvivesRestarts(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.MaxBatch, b.Retry = 1, Fixed(1, time.Second)
		b.Breaker = Breaker{Failures: 1}
		w.orders.Send("0", "bad", "bad", "ok")
		l := &life{}
		a := w.startIn(l, "a", failOn("bad"), b)
		after(time.Minute)
		w.wantState("open")
		l.kill()
		<-a.done
		next := w.start("b", failOn("bad"), b)
		after(10 * time.Minute)
		calls := w.gotCalls()
		testkit.Equal(t, len(calls), 4, "calls %v", calls)
		testkit.Must(t, next.Resume(w.t.Context(), "bill"))
		after(time.Minute)
		w.wantCalls(append(calls, "0:1 3", "0:1 4", "0:2 1")...)
		w.wantAway("0/0", "0/1")
		next.stop()
	})
}

// F7: half-open probing with one event.
func TestProbingClosesTheCircuitByItself(t *testing.T) {
	bubble(t, 4, func(w *world) {
		b := binding()
		b.Retry = None()
		b.Breaker = Breaker{Failures: 2, Probe: 10 * time.Second, ProbeMax: 20 * time.Second}
		var dep outage
		dep.down.Store(true)
		var circuits []string
		l := &life{}
		h := w.host("a", l)
		h.cfg.OnCircuit = func(c Circuit) { circuits = append(circuits, c.State) }
		h.Handle("bill", w.noted(l, dep.handle), b)
		for p := range 4 {
			w.orders.SendN(fmt.Sprint(p), 4)
		}
		in := w.run(h, l)
		after(5 * time.Second)
		w.wantState("open")
		calls, away := len(w.gotCalls()), len(w.poisonEvents())
		after(50 * time.Second) // probes after 10, 20 and 20 s
		probes := w.gotCalls()[calls:]
		testkit.Equal(t, len(probes), 3, "probes %v", probes)
		for _, p := range probes {
			testkit.That(t, !strings.Contains(p, "-"), "a probe with more than one event: %s", p)
		}
		dep.down.Store(false)
		after(time.Minute)
		w.wantState("closed")
		done := 0
		for p := range 4 {
			w.wantSaved(fmt.Sprint(p), 3)
			done += len(w.gotDone(fmt.Sprint(p)))
		}
		if n := len(w.poisonEvents()); n != away || done != 16-away {
			t.Errorf("%d put away, %d before, %d done", n, away, done)
		}
		got := strings.Join(circuits, " ")
		if !strings.HasPrefix(got, "open half-open open half-open") || !strings.HasSuffix(got, "half-open closed") {
			t.Errorf("told of %s", got)
		}
		in.stop()
	})
}

// F7: a partition whose batch had never been tried can be the prober, too; its batch goes on behind
// the probe.
func TestAFreshBatchCanProbe(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.Breaker = Breaker{Failures: 1, Probe: 10 * time.Second}
		in := w.start("a", failOn(), b)
		after(time.Second)
		testkit.Must(t, in.Hold(w.t.Context(), "bill", "maintenance"))
		after(time.Second)
		w.orders.SendN("0", 4)
		after(time.Hour)
		w.wantState("held")
		w.wantCalls() // an operator's word is not probed
		if s := in.Status()[0].Circuit; s.Reason != "maintenance" || s.By != "a" {
			t.Errorf("circuit %+v", s)
		}
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(time.Second)
		w.wantCalls("0:0-3 1")
		in.stop()
	})
	bubble(t, 2, func(w *world) {
		b := binding()
		b.Retry, b.MaxBatch = None(), 4
		b.Breaker = Breaker{Failures: 1, Probe: 10 * time.Second}
		w.orders.Send("0", "bad", "bad")
		in := w.start("a", func(_ context.Context, batch *Batch) error {
			if batch.Partition == "0" {
				return errBad
			}
			return nil
		}, b)
		after(time.Second)
		w.wantState("open")
		in.life.setDeny(nil)
		w.orders.SendN("1", 4)
		after(10 * time.Minute) // whichever of both is the prober: in the end it is the one that can
		if got := w.gotDone("1"); len(got) != 4 {
			t.Errorf("of partition 1 is done %v", got)
		}
		if !slices.Contains(w.gotCalls(), "1:0 1") || !slices.Contains(w.gotCalls(), "1:1-3 1") {
			t.Errorf("calls %v", w.gotCalls())
		}
		in.stop()
	})
}

// F5: a call that ended well although the circuit had opened is done, but its checkpoint waits for
// the circuit, or for the end.
func TestTheCheckpointOfACallThatWasUnderWayWaits(t *testing.T) {
	slow := func(ctx context.Context, b *Batch) error { time.Sleep(10 * time.Second); return nil }
	for name, c := range map[string]struct {
		then  func(w *world, in *instance)
		calls []string
	}{
		"until it is closed and the partition idle": {func(w *world, in *instance) {
			testkit.Must(w.t, in.Resume(w.t.Context(), "bill"))
			after(3 * time.Second)
			w.wantSaved("0", 3)
			in.stop()
		}, []string{"0:0-3 1"}},
		"until the next batch is done": {func(w *world, in *instance) {
			w.orders.SendN("0", 1)
			after(time.Minute)
			w.wantSaved("0", -1)
			testkit.Must(w.t, in.Resume(w.t.Context(), "bill"))
			after(11 * time.Second)
			w.wantSaved("0", 4)
			in.stop()
		}, []string{"0:0-3 1", "0:4 1"}},
		"until the partition is given up": {func(w *world, in *instance) {
			in.stop()
			w.wantSaved("0", 3)
			w.wantState("held")
		}, []string{"0:0-3 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 4)
				in := w.start("a", slow, binding())
				after(time.Second)
				testkit.Must(t, in.Hold(w.t.Context(), "bill", "no more"))
				after(time.Minute)
				w.wantSaved("0", -1)
				if s := in.Status()[0]; s.Done != 4 {
					t.Errorf("status %+v", s)
				}
				c.then(w, in)
				w.wantCalls(c.calls...)
			})
		})
	}
}

// F5: Each begins no event more once the circuit is open, and what it has done is not done again.
func TestEachHeedsTheCircuitBetweenEvents(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 6)
		var seen []int64
		in := w.start("a", Each(func(ctx context.Context, ev event.Event) error {
			seen = append(seen, ev.Sequence)
			time.Sleep(time.Second)
			return nil
		}), binding())
		after(2500 * time.Millisecond)
		testkit.Must(t, in.Hold(w.t.Context(), "bill", "no more"))
		after(time.Minute)
		testkit.Equal(t, len(seen), 3, "seen %v", seen)
		w.wantSaved("0", -1)
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(time.Minute)
		testkit.Slices(t, seen, []int64{0, 1, 2, 3, 4, 5}, "seen")
		w.wantSaved("0", 5)
		in.stop()
	})
}

// F5: by option, and with retries for ever, failed attempts count.
func TestAttemptsCountByOptionAndWithRetriesForEver(t *testing.T) {
	for name, change := range map[string]func(*Binding){
		"by option": func(b *Binding) { b.Retry, b.Breaker.Attempts = Fixed(100, time.Second), true },
		"for ever":  func(b *Binding) { b.Retry = Fixed(Forever, time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 1)
				b := binding()
				b.Breaker.Failures = 5
				change(&b)
				in := w.start("a", failOn("0"), b)
				after(time.Hour)
				w.wantState("open")
				testkit.Equal(t, len(w.gotCalls()), 6, "calls")
				w.wantAway()
				in.stop()
			})
		})
	}
}

// F5: halves are no failures: only the guilty event counts.
func TestOnlyGuiltyEventsCount(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 64)
		b := binding()
		b.Retry, b.Breaker.Failures = None(), 2
		in := w.start("a", failOn("7", "40"), b)
		after(time.Minute)
		w.wantState("closed")
		w.wantAway("0/7", "0/40")
		w.wantSaved("0", 63)
		in.stop()
	})
}

// F4, F5: dropping follows the same steps.
func TestDroppedEventsAreCountedAndStopWithTheCircuit(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.Send("0", "bad", "ok", "bad", "bad", "bad")
		b := binding()
		b.MaxBatch, b.Retry, b.Poison, b.Breaker.Failures = 1, None(), NoPoison, 2
		in := w.start("a", failOn("bad"), b)
		after(time.Minute)
		w.wantState("open")
		w.wantAway()
		w.wantSaved("0", 2)
		if s := in.Status()[0]; s.Dropped != 2 || s.Poisoned != 0 || s.Done != 1 {
			t.Errorf("status %+v", s)
		}
		testkit.Equal(t, strings.Count(w.logged(), "an event was dropped"), 1, "logged times")
		in.stop()
	})
}

// F5: a circuit that cannot be read lets nothing through.
func TestBeforeTheCircuitIsKnownNothingIsCalled(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		l := &life{}
		l.setDeny(func(step string) error {
			if step == "entries circuit/" {
				return errDown
			}
			return nil
		})
		in := w.startIn(l, "a", failOn(), binding())
		after(time.Minute)
		w.wantCalls()
		testkit.Equal(t, in.Status()[0].Circuit.State, "unknown", "the state")
		l.setDeny(nil)
		after(10 * time.Second)
		w.wantCalls("0:0 1")
		in.stop()
	})
}

// F5: before a put-away the circuit is read from the store: what this instance has seen may be old.
func TestNothingIsPutAwayOnWhatIsOnlyBelievedOfTheCircuit(t *testing.T) {
	bubble(t, 1, func(w *world) {
		l := &life{}
		blind := struct{ processor.Store }{&store{w.store, l}} // it cannot be watched
		h := NewHostIn(w.space.view(l), Config{ID: "a", Store: blind, Poll: time.Hour, Renew: 10 * time.Second, OnError: w.onError, Log: discard()})
		b := binding()
		b.Retry = Fixed(2, time.Second)
		h.Handle("bill", w.noted(l, failOn("0")), b)
		in := w.run(h, l)
		after(time.Second)
		testkit.Must(t, in.Hold(w.t.Context(), "bill", "by another"))
		w.orders.SendN("0", 1)
		after(10 * time.Minute)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3") // it did not know
		w.wantAway()
		w.wantSaved("0", -1)
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(2 * time.Hour)
		w.wantAway("0/0")
		in.stop()
	})
}

// F5: not only the event that trips it has a fresh round of retries after the circuit was closed.
func TestWhatWaitedForARetryHasAFreshRoundToo(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		b := binding()
		b.Retry = Fixed(2, 10*time.Second)
		in := w.start("a", failOn("0"), b)
		after(15 * time.Second)
		w.wantCalls("0:0 1", "0:0 2")
		testkit.Must(t, in.Hold(w.t.Context(), "bill", ""))
		after(time.Minute)
		w.wantCalls("0:0 1", "0:0 2")
		if work := w.work("0"); len(work.Units) != 1 || work.Units[0].Used != 0 {
			t.Errorf("the work is %s", show(work))
		}
		testkit.Must(t, in.Resume(w.t.Context(), "bill"))
		after(time.Minute)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3", "0:0 4", "0:0 5")
		w.wantAway("0/0")
		in.stop()
	})
}
