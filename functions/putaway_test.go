package functions

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// F4: if poison cannot be written, the checkpoint waits.
func TestThePartitionWaitsForThePoisonHub(t *testing.T) {
	bubble(t, 2, func(w *world) {
		away := errors.New("the poison hub is away")
		w.poison.SetDown(away)
		w.orders.Send("0", "ok", "bad", "ok")
		b := binding()
		b.MaxBatch = 1
		in := w.start("a", failOn("bad"), b)
		after(time.Hour)
		w.wantSaved("0", 0)
		w.wantCalls("0:0 1", "0:1 1", "0:1 2", "0:1 3")
		testkit.That(t, w.reported(away), "nobody was told")
		w.orders.Send("1", "ok") // F8
		after(time.Second)
		w.wantSaved("1", 0)
		w.poison.SetDown(nil)
		after(31 * time.Second)
		w.wantSaved("0", 2)
		w.wantAway("0/1")
		in.stop()
	})
}

// F4: a stop in the middle of it repeats nothing: the next owner writes the poison event, and calls
// nothing before.
func TestTheNextOwnerWritesThePoisonEventThatWasAboutToBe(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.poison.SetDown(errors.New("away"))
		w.orders.Send("0", "bad", "ok")
		b := binding()
		b.MaxBatch = 1
		a := w.start("a", failOn("bad"), b)
		after(time.Minute)
		before := time.Now()
		a.stop()
		if took := time.Since(before); took > time.Second {
			t.Errorf("to stop took %v", took)
		}
		if work := w.work("0"); work.Intent == nil || work.Intent.Sequence != 0 || !work.Clean {
			t.Errorf("the work is %s", show(work))
		}
		w.poison.SetDown(nil)
		next := w.start("b", failOn(), b) // even a function that could handle it now
		after(time.Minute)
		w.wantCalls("0:0 1", "0:0 2", "0:0 3", "0:1 1")
		w.wantAway("0/0")
		if l := w.poisonEvents()[0]; l.Attempts != 3 || l.Reason != "bad event bad" || l.Instance != "b" {
			t.Errorf("the poison event is %+v", l)
		}
		next.stop()
	})
}

// F4: the poison hub may be made anew, which forgets our numbers.
func TestAPoisonHubThatWasMadeAnewIsWrittenToWithNewNumbers(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.Send("0", "bad", "bad")
		b := binding()
		b.MaxBatch, b.Retry = 1, None()
		in := w.start("a", failOn("bad"), b)
		after(time.Second)
		w.wantAway("0/0", "0/1")
		first := w.work("0").Producer
		w.poison = w.space.make("bill-poison", 1)
		w.orders.Send("0", "bad", "bad")
		after(time.Second)
		w.wantAway("0/2", "0/3")
		if work := w.work("0"); work.Producer == first || work.Number != 2 {
			t.Errorf("the work is %s", show(work))
		}
		in.stop()
	})
}

// And with fewer partitions than it had.
func TestAPoisonHubWithFewerPartitionsThanBefore(t *testing.T) {
	bubble(t, 3, func(w *world) {
		w.poison = w.space.make("bill-poison", 3)
		w.orders.Send("2", "bad")
		b := binding()
		b.Retry = None()
		in := w.start("a", failOn("bad"), b)
		after(time.Second)
		w.wantAway("2/0")
		w.poison = w.space.make("bill-poison", 1)
		w.orders.Send("2", "bad")
		after(time.Second)
		w.wantAway("2/1")
		in.stop()
	})
}

// The poison events of a partition keep their order: they go to one partition, by its number.
func TestPoisonGoesToThePartitionOfTheSameNumber(t *testing.T) {
	bubble(t, 5, func(w *world) {
		w.poison = w.space.make("bill-poison", 3)
		b := binding()
		b.Retry = None()
		for _, p := range []string{"0", "1", "2", "3", "4"} {
			w.orders.Send(p, "bad")
		}
		in := w.start("a", failOn("bad"), b)
		after(time.Second)
		for p, want := range map[string]string{"0": "0 3", "1": "1 4", "2": "2"} {
			var from []string
			for _, ev := range w.poison.All(p) {
				l, _ := poison.Read(ev)
				from = append(from, l.Partition)
			}
			slices.Sort(from)
			if got := strings.Join(from, " "); got != want {
				t.Errorf("in partition %s are poison events of %s, want %s", p, got, want)
			}
		}
		in.stop()
	})
}

// Producers are links at the hub, of which a connection has not many.
func TestOnlyAFewProducersStayOpen(t *testing.T) {
	bubble(t, 30, func(w *world) {
		b := binding()
		b.Retry = None()
		for p := range 30 {
			w.orders.Send(strconv.Itoa(p), "bad", "ok", "bad")
		}
		in := w.start("a", failOn("bad"), b)
		after(time.Minute)
		testkit.Equal(t, len(w.poisonEvents()), 60, "poison events")
		testkit.Equal(t, w.space.producers.Load(), keptProducers, "producers are open")
		in.stop()
		testkit.Equal(t, w.space.producers.Load(), 0, "producers stayed open")
	})
}

// memorySink keeps poison events in memory, and fails as often as it is told.
type memorySink struct {
	mu           sync.Mutex
	fail         int
	poisonEvents []PoisonEvent
}

func (s *memorySink) String() string { return "a drawer" }

func (s *memorySink) Put(_ context.Context, l PoisonEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		if s.fail--; s.fail == 0 {
			panic("the drawer is stuck")
		}
		return errors.New("the drawer is closed")
	}
	s.poisonEvents = append(s.poisonEvents, l)
	return nil
}

// F4: any other target.
func TestAnotherTargetForPoison(t *testing.T) {
	bubble(t, 1, func(w *world) {
		sink := &memorySink{fail: 3}
		b := binding()
		b.PoisonTo, b.Retry = sink, None()
		w.orders.Send("0", "ok", "k:bad", "ok")
		in := w.start("a", failOn("k:bad"), b)
		after(time.Minute)
		w.wantSaved("0", 2)
		w.wantAway()
		testkit.MustEqual(t, len(sink.poisonEvents), 1, "poison events %+v", sink.poisonEvents)
		l := sink.poisonEvents[0]
		if l.ID != "bill/orders/0/1" || l.Function != "bill" || l.Hub != "orders" || l.Group != "$Default" || l.Partition != "0" ||
			l.Sequence != 1 || l.Reason != "bad event k:bad" || l.Attempts != 3 || l.Deaths != 0 || l.Event.Key != "k" ||
			l.Instance != "a" || l.At.IsZero() || l.Stack != "" {
			t.Errorf("the poison event is %+v", l)
		}
		if s := in.Status()[0]; s.Poisoned != 1 {
			t.Errorf("status %+v", s)
		}
		in.stop()
	})
}

// An event that was redriven for another function is passed over without a call.
func TestEventsRedrivenForOthersArePassedOver(t *testing.T) {
	bubble(t, 1, func(w *world) {
		redriven := func(function string) map[string]any { return map[string]any{poison.PropertyRedriveFor: function} }
		w.orders.Send("0", "0", "1", "2", "3", "4")
		w.orders.Change("0", func(events []event.Event) {
			events[1].Properties = redriven("ship")
			events[2].Properties = redriven("bill")
			events[3].Properties = map[string]any{"of": "their own"}
			events[4].Properties = redriven("ship")
		})
		b := binding()
		in := w.start("a", failOn(), b)
		after(time.Second)
		w.wantCalls("0:0,2-3 1")
		w.wantSaved("0", 4)
		in.stop()
	})
}

// An operator who moves the checkpoint back gets everything once more, also what was put away.
func TestARewoundCheckpointRepeatsEverything(t *testing.T) {
	for name, end := range map[string]func(in *instance){
		"while it runs":        func(*instance) {},
		"while nobody runs":    func(in *instance) { in.stop() },
		"after its owner died": func(in *instance) { in.life.kill(); <-in.done },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(w *world) {
				w.orders.SendN("0", 4)
				b := binding()
				b.Retry = None()
				a := w.start("a", failOn("2"), b)
				after(10 * time.Second)
				w.wantAway("0/2")
				w.wantSaved("0", 3)
				end(a)
				w.force("0", 0)
				next := w.start("b", failOn("2"), b)
				after(5 * time.Minute)
				calls := w.gotCalls()
				testkit.That(t, slices.Contains(calls, "0:1-3 1"), "calls %v", calls)
				w.wantAway("0/2", "0/2") // twice, as it was wanted
				w.wantSaved("0", 3)
				a.cancel()
				next.stop()
			})
		})
	}
}

// And one who moves it forward, past an event that is being retried, gets on with what is behind
// it.
func TestACheckpointMovedForwardEndsARetry(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 4)
		b := binding()
		b.MaxBatch, b.Retry = 1, Fixed(100, time.Minute)
		in := w.start("a", failOn("1"), b)
		after(10 * time.Minute)
		w.wantSaved("0", 0)
		w.force("0", 1)
		after(2 * time.Minute)
		w.wantSaved("0", 3)
		w.wantAway()
		in.stop()
	})
}

// A former owner that does not know that it is none can write nothing.
func TestAFormerOwnerCannotWriteTheWork(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.SendN("0", 1)
		b := binding()
		b.Retry = Fixed(100, 40*time.Second)
		in := w.start("a", failOn("0"), b)
		after(time.Second)
		// Another takes the partition by force, as if this one had slept.
		leases, err := w.store.Leases(w.t.Context(), testGroup)
		testkit.Must(t, err)
		l := leases[0]
		l.Owner, l.Epoch = "b", l.Epoch+1
		if got, err := w.store.Claim(w.t.Context(), testGroup, []processor.Lease{l}); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		owned := func(epoch int64, instance string) *record {
			return &record{store: w.store, group: testGroup, key: workPrefix + "bill/0", function: "bill", reader: &workReader{},
				epoch: epoch, instance: instance, pen: make(chan struct{}, 1)}
		}
		testkit.Must(t, testkit.Err(owned(l.Epoch, "b").open(w.t.Context(), b.Retry.policy(), -1)))
		if _, err := owned(l.Epoch-1, "a").open(w.t.Context(), b.Retry.policy(), -1); !errors.Is(err, processor.ErrFenced) {
			t.Errorf("an older epoch opened: %v", err)
		}
		after(2 * time.Minute)
		if work := w.work("0"); work.Instance == "a" && work.Epoch == 1 {
			t.Errorf("the work is %s", show(work))
		}
		in.stop()
	})
}

// A record that cannot be read is begun anew: attempts are forgotten, events are not.
func TestAnUnreadableRecordStopsNobody(t *testing.T) {
	bubble(t, 1, func(w *world) {
		if _, err := w.store.Put(w.t.Context(), testGroup, processor.Entry{Key: workPrefix + "bill/0", Value: []byte("{")}); err != nil {
			t.Fatal(err)
		}
		w.orders.SendN("0", 2)
		in := w.start("a", failOn(), binding())
		after(time.Second)
		w.wantSaved("0", 1)
		if len(w.errs) != 1 || !strings.Contains(w.errs[0].Error(), "attempts so far are forgotten") {
			t.Errorf("told of %v", w.errs)
		}
		in.stop()
	})
}

// A store that is away for a while, or loses answers, stops retries and put-aways, and loses
// nothing.
func TestAStoreThatIsAwayIsWaitedFor(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.Send("0", "ok", "bad", "ok", "bad", "ok")
		b := binding()
		b.MaxBatch, b.Retry = 1, Fixed(1, time.Second)
		l := &life{}
		n := 0
		l.setDeny(func(step string) error {
			if !ofTheWork(step) {
				return nil
			}
			if n++; n%3 != 0 {
				return errDown
			}
			return nil
		})
		in := w.startIn(l, "a", failOn("bad"), b)
		after(5 * time.Minute)
		w.wantAway("0/1", "0/3")
		w.wantSaved("0", 4)
		testkit.That(t, w.reported(errDown), "nobody was told")
		l.setDeny(nil)
		in.stop()
	})
}

// F4: answers that were lost are found again: nothing is put away twice.
func TestLostAnswersRepeatNothing(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.orders.Send("0", "ok", "bad", "ok", "bad", "ok")
		b := binding()
		b.MaxBatch, b.Retry = 1, Fixed(1, time.Second)
		l := &life{}
		s := &forgetful{store: store{w.store, l}}
		h := NewHostIn(w.space.view(l), Config{ID: "a", Store: s, OnError: w.onError, Log: discard()})
		h.Handle("bill", w.noted(l, failOn("bad")), b)
		in := w.run(h, l)
		after(5 * time.Minute)
		w.wantAway("0/1", "0/3")
		w.wantSaved("0", 4)
		w.wantCalls("0:0 1", "0:1 1", "0:1 2", "0:2 1", "0:3 1", "0:3 2", "0:4 1")
		in.stop()
		testkit.That(t, s.lost != 0, "no answer was lost")
	})
}

// forgetful loses the answer to every second write of the work.
type forgetful struct {
	store
	mu      sync.Mutex
	n, lost int // guarded by mu
}

func (s *forgetful) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	got, err := s.store.Put(ctx, g, f)
	if err != nil || !strings.HasPrefix(f.Key, workPrefix) {
		return got, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n%2 == 0 {
		s.lost++
		return processor.Entry{}, errDown
	}
	return got, err
}

func TestWithoutAPoisonHubRunSaysHowToMakeIt(t *testing.T) {
	bubble(t, 1, func(w *world) {
		b := binding()
		b.Poison = "nowhere"
		in := w.start("a", failOn(), b)
		err := <-in.done
		if !errors.Is(err, hub.ErrNotFound) || !strings.Contains(err.Error(), "eventyard hub create nowhere --partitions 1") ||
			!strings.Contains(err.Error(), "Binding.PoisonTo") {
			t.Errorf("it ended with %v", err)
		}
	})
}
