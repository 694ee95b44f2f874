package functions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// F2, F4: whenever the owner dies, nothing is lost, and what is put away is in the poison hub
// exactly once.
func TestPoisonIsStoredExactlyOnceWhereverTheOwnerDies(t *testing.T) {
	for name, change := range map[string]func(*Binding){
		"in order":            func(b *Binding) { b.MaxBatch = 4 },
		"in batches of one":   func(b *Binding) { b.MaxBatch = 1 },
		"with results":        func(*Binding) {},
		"deferred checkpoint": func(b *Binding) { b.MaxBatch, b.Checkpoints = 2, processor.Checkpoints{Every: time.Minute} },
		"lanes":               func(b *Binding) { b.MaxBatch, b.Lanes = 2, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, afterIt := range []bool{false, true} {
				for n := 1; dieAt(t, name, change, n, afterIt); n++ {
				}
			}
		})
	}
}

// dieAt lets the first owner die at its nth step, and another go on; false: it had not that many.
func dieAt(t *testing.T, name string, change func(*Binding), n int, afterIt bool) (died bool) {
	bubble(t, 1, func(w *world) {
		for i := range 8 {
			w.orders.Send("0", fmt.Sprintf("key%d:%d", i%3, i))
		}
		b := binding()
		b.Retry = Fixed(1, time.Second)
		change(&b)
		handle := failOn("key2:2", "key2:5", "key0:6")
		l := &life{die: n, after: afterIt, only: ofTheWork}
		first, second := handle, handle
		if name == "with results" {
			first, second = w.eachOf(l, handle), w.eachOf(&life{}, handle)
		}
		a := w.startIn(l, "a", first, b)
		after(15 * time.Second)
		next := w.start("b", second, b)
		after(40 * time.Second) // that is longer than a lease
		a.cancel()
		<-a.done
		died = l.alive() != nil
		after(50 * time.Second)
		next.stop()
		w.wantSaved("0", 7)
		var away []string
		for _, poisonEvent := range w.poisonEvents() {
			away = append(away, poisonEvent.ID)
		}
		if slices.Sort(away); !slices.Equal(away, []string{"bill/orders/0/2", "bill/orders/0/5", "bill/orders/0/6"}) {
			t.Errorf("put away %v", away)
		}
		w.wantAllDone("0", 8, 2, 5, 6)
		if work := w.work("0"); len(work.Units) > 0 || len(work.Away) > 0 || work.Intent != nil || !work.Clean {
			t.Errorf("left behind %s", show(work))
		}
		if t.Failed() {
			t.Logf("died at step %d (after it was done: %v) of %v; calls %v", n, afterIt, l.done(), w.gotCalls())
		}
	})
	return died && !t.Failed()
}

// eachOf makes a handler for batches one for single events, and notes what it has done.
func (w *world) eachOf(l *life, handle Handler) Handler {
	return Each(func(ctx context.Context, ev event.Event) error {
		err := handle(ctx, &Batch{Events: []event.Event{ev}})
		if err == nil && l.alive() == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.done[ev.Partition] = append(w.done[ev.Partition], string(ev.Body))
		}
		return err
	})
}

// wantAllDone wants each of n events but some done at least once, and for each key the first time
// in order.
func (w *world) wantAllDone(partition string, n int, but ...int) {
	w.t.Helper()
	seen := map[string]bool{}
	last := map[string]string{}
	for _, text := range w.gotDone(partition) {
		key, number, _ := strings.Cut(text, ":")
		if !seen[text] && number < last[key] {
			w.t.Errorf("%s came first after %s", text, last[key])
		}
		seen[text] = true
		last[key] = max(last[key], number)
	}
	for i := range n {
		if text := fmt.Sprintf("key%d:%d", i%3, i); seen[text] == slices.Contains(but, i) {
			w.t.Errorf("event %s: done is %v", text, seen[text])
		}
	}
}

// F3: attempts survive the death of their instance; a death in a call that had failed before is
// counted.
func TestAttemptsSurviveRestarts(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		b := binding()
		b.Retry = Fixed(5, time.Minute)
		a := w.start("a", failOn("0"), b)
		after(90 * time.Second)
		w.wantCalls("0:0 1", "0:0 2")
		a.stop()
		l := &life{}
		c := w.startIn(l, "b", failOn("0"), b)
		after(61 * time.Second)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3", "0:0 4")
		l.kill() // while it waits
		<-c.done
		d := w.start("c", failOn("0"), b)
		after(10 * time.Minute)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3", "0:0 4", "0:0 5", "0:0 6")
		w.wantAway("0/0")
		testkit.Equal(t, w.poisonEvents()[0].Attempts, 6, "the poison event tells")
		d.stop()
	})
}

// F2, F4: an event that kills whoever handles it ends in the poison hub, and no other event does.
func TestAnEventThatKillsIsPutAwayInTheEnd(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 8)
		b := binding()
		b.Lanes = 2
		deaths := 0
		for deaths < 60 {
			l := &life{}
			in := w.startIn(l, fmt.Sprint("i", deaths), func(ctx context.Context, batch *Batch) error {
				time.Sleep(time.Second)
				if slices.ContainsFunc(batch.Events, func(ev event.Event) bool { return string(ev.Body) == "5" }) {
					l.kill()
				}
				return nil
			}, b)
			after(3 * time.Minute)
			if l.alive() == nil {
				in.stop()
				break
			}
			deaths++
			<-in.done
		}
		w.wantAway("0/5")
		w.wantSaved("0", 7)
		if l := w.poisonEvents()[0]; l.Deaths < 3 || l.Attempts != l.Deaths || l.Reason != "the instance died in the call" {
			t.Errorf("the poison event is %+v", l)
		}
		t.Logf("it took %d deaths", deaths)
	})
}

// An instance that is killed by hand costs no event anything.
func TestOneDeathIsHeldAgainstNobody(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 4)
		l := &life{}
		a := w.startIn(l, "a", func(ctx context.Context, b *Batch) error { time.Sleep(time.Second); return nil }, binding())
		after(500 * time.Millisecond)
		l.kill()
		<-a.done
		b := w.start("b", failOn(), binding())
		after(time.Minute)
		w.wantCalls("0:0-3 1", "0:0-3 1")
		w.wantAway()
		b.stop()
	})
}

// A call that is over is not in the store as begun, even if no checkpoint tells so: a later death
// is none of its doing.
func TestACallThatIsOverIsNoDeath(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 2)
		b := binding()
		b.MaxBatch, b.Checkpoints = 1, processor.Checkpoints{Every: time.Hour, Events: 1000}
		b.MaxWait = time.Hour // it is never idle
		in := w.start("a", func(_ context.Context, batch *Batch) error {
			if batch.Events[0].Sequence == 0 && batch.Attempt < 3 {
				return errBad
			}
			return nil
		}, b)
		after(10 * time.Second)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3", "0:1 1")
		w.wantSaved("0", -1)
		if work := w.work("0"); len(work.Units) > 0 {
			t.Errorf("the work is %s", show(work))
		}
		in.stop()
	})
}

// F4: while an event kills one instance after the other, another that only fails is not taken for
// the killer, though it is always being called when they die.
func TestOnlyTheKillerIsHeldGuiltyOfDeaths(t *testing.T) {
	bubble(t, 2, func(w *world) {
		w.orders.Send("0", "killer")
		w.orders.Send("1", "innocent")
		b := binding()
		b.Retry, b.Breaker.Off, b.Timeout = Fixed(Forever, 100*time.Millisecond), true, time.Minute
		for deaths := range 40 {
			l := &life{}
			in := w.startIn(l, fmt.Sprint("i", deaths), func(ctx context.Context, batch *Batch) error {
				if batch.Partition == "0" {
					time.Sleep(500 * time.Millisecond)
					l.kill()
					return nil
				}
				time.Sleep(10 * time.Second)
				return errBad
			}, b)
			after(3 * time.Minute)
			if l.alive() == nil {
				in.stop()
				break
			}
			<-in.done
		}
		w.wantAway("0/0")
		w.wantSaved("1", -1)
	})
}

// left puts a record into the store as an earlier owner has left it in good order, and a circuit
// that is open.
func (w *world) left(u triage.Unit) {
	w.t.Helper()
	value, err := triage.EncodeWork(triage.Work{Instance: "before", Clean: true, Begun: -1, Units: []triage.Unit{u}})
	testkit.Must(w.t, err)
	open := breaker.EncodeRecord(breaker.Record{State: breaker.Open, Term: 1, Incident: "x"})
	for key, value := range map[string][]byte{workPrefix + "bill/0": value, circuit.Prefix + "bill": open} {
		if _, err := w.store.Put(w.t.Context(), testGroup, processor.Entry{Key: key, Value: value}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// F4: probes that end, though they fail, show that their event does not kill.
func TestProbesThatEndPutAnEndToSuspicion(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 2)
		w.left(triage.Unit{Events: ranges.SetOf(0), Deaths: 2, Counted: 2})
		b := binding()
		b.Breaker = Breaker{Failures: 1, Probe: time.Second, ProbeMax: time.Second}
		in := w.start("a", failOn("0"), b)
		after(2 * time.Minute)
		work := w.work("0")
		if len(work.Units) != 1 || work.Units[0].Attempts < 5 || work.Units[0].Counted != 0 || work.Wary(work.Units[0]) {
			t.Errorf("after %d calls the work is %s", len(w.gotCalls()), show(work))
		}
		in.stop()
	})
}

// F4, F5: an event that instances have died of is not called again because the circuit is open, nor
// put away meanwhile. Others try the circuit.
func TestAnEventThatKillsIsNoProbe(t *testing.T) {
	killer := triage.Unit{Events: ranges.SetOf(0), Deaths: 3, Counted: 3}
	b := binding()
	b.Breaker = Breaker{Failures: 1, Probe: time.Second, ProbeMax: time.Second}
	bubble(t, 1, func(w *world) {
		w.left(killer)
		w.orders.SendN("0", 3)
		in := w.start("a", failOn(), b)
		after(time.Minute)
		w.wantState("closed")
		w.wantCalls("0:1 1", "0:2 1")
		w.wantAway("0/0")
		w.wantSaved("0", 2)
		in.stop()
	})
	bubble(t, 1, func(w *world) {
		w.left(killer)
		w.orders.SendN("0", 1)
		in := w.start("a", failOn(), b)
		after(time.Hour)
		w.wantState("open")
		w.wantCalls()
		w.wantAway()
		testkit.Must(t, in.Resume(t.Context(), "bill"))
		after(time.Minute)
		w.wantCalls()
		w.wantAway("0/0")
		w.wantSaved("0", 0)
		in.stop()
	})
	bubble(t, 1, func(w *world) {
		w.left(killer)
		w.orders.SendN("0", 1)
		in := w.start("a", failOn(), b)
		after(time.Hour)
		in.stop() // it can leave while it waits
		w.wantAway()
	})
}
