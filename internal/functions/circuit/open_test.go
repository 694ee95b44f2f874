package circuit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

var five = breaker.Policy{Failures: 5, Within: 30 * time.Second}

func TestMoreThanSoManyOpenItAndNotSoMany(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.failed(3, false)
		a.putsAway(1, 1)
		a.putsAway(3, 1) // the next two are too many
		a.mayPutAway(false)
		a.is(breaker.Open)
		if r := w.stored(); r.State != breaker.Open || r.Term != 1 || r.Incident == "" || r.By != "a" || r.Failures != 7 ||
			len(r.Samples) != 3 || r.Policy != five {
			t.Errorf("%+v", r)
		}
		a.failed(3, true)
		testkit.Equal(t, a.heard(), "closed→open", "it was told")
	})
}

func TestFailuresOfAllInstancesCountTogether(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b, c := w.start("a"), w.startPolling("b"), w.start("c")
		a.failed(2, false)
		b.failed(2, false)
		c.failed(2, false)
		pass(writeEvery + time.Second)
		for _, m := range []*played{a, b, c} {
			m.is(breaker.Open)
			m.knows(0) // of the new term
		}
		if r := w.stored(); r.Term != 1 || r.Failures != 6 {
			t.Errorf("%+v", r)
		}
	})
}

func TestFailuresOutsideTheWindowDoNotCount(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.failed(5, false)
		pass(20 * time.Second)
		b.knows(5)
		pass(10 * time.Second)
		b.failed(5, false)
		pass(time.Second)
		a.knows(5)
		a.is(breaker.Closed)
	})
}

func TestAllSeeItWithinASecond(t *testing.T) { // F5
	for name, start := range map[string]func(*world, string) *played{"watched": (*world).start, "polled": (*world).startPolling} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, five, func(t *testing.T, w *world) {
				a, b := start(w, "a"), start(w, "b")
				for range 5 {
					pass(7*time.Second + 321*time.Millisecond)
					a.failed(6, true)
					pass(time.Second)
					b.is(breaker.Open)
					waits := b.wait()
					w.resume()
					pass(time.Second)
					testkit.MustThat(t, waits.passed(), "the circuit is closed, and who waits has not heard of it")
					a.is(breaker.Closed)
					b.is(breaker.Closed)
				}
			})
		})
	}
}

func TestClosingClearsTheWindow(t *testing.T) { // F5, F7
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		b.failed(3, false)
		a.failed(3, false)
		pass(time.Second)
		a.is(breaker.Open)
		w.resume()
		pass(time.Second)
		a.knows(0)
		a.failed(3, false)
		b.failed(2, false)
		pass(time.Second)
		a.is(breaker.Closed)
		b.knows(5)
		first := w.stored()
		b.failed(1, true)
		if r := w.stored(); r.Term != first.Term+1 || r.Failures != 6 {
			t.Errorf("%+v", r)
		}
	})
}

func TestTwoThatOpenItAtOnceMakeOneIncident(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		var all []*played
		for _, id := range []string{"a", "b", "c", "d"} {
			all = append(all, w.startPolling(id))
		}
		for _, m := range all {
			go func() {
				if open, err := m.Failed(t.Context(), 6); !open || err != nil {
					t.Errorf("%s: open %v, %v", m.id, open, err)
				}
			}()
		}
		pass(2 * time.Second)
		if r := w.stored(); r.Term != 1 {
			t.Errorf("%+v", r)
		}
		for _, m := range all {
			if m.is(breaker.Open); m.heard() != "closed→open" {
				t.Errorf("%s heard %s", m.id, m.heard())
			}
		}
	})
}

func TestALostAnswerOpensItOnce(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.set(a.store.lose, "put circuit", 1)
		a.failed(6, true)
		pass(10 * time.Second)
		if r := w.stored(); r.Term != 1 || a.heard() != "closed→open" {
			t.Errorf("%+v, heard %s", r, a.heard())
		}
	})
}

func TestWhatCouldNotBeOpenedIsOpenedLater(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.set(a.store.deny, "put circuit", 1000)
		if open, err := a.Failed(t.Context(), 6); open || !errors.Is(err, errDown) {
			t.Fatalf("%v, %v", open, err)
		}
		if may, _, err := a.MayPutAway(t.Context(), AnyTerm, 1); may > 0 || !errors.Is(err, errDown) {
			t.Fatalf("with too many failures, and none to hear of it, it may put away: %v, %v", may, err)
		}
		a.store.set(a.store.deny, "put circuit", 0)
		pass(2 * time.Second)
		a.is(breaker.Open)
	})
}

func TestMayPutAwayOpensWhatIsDue(t *testing.T) { // F5: what trips it stays undone
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.set(a.store.deny, "put circuit", 1)
		if _, err := a.Failed(t.Context(), 6); err == nil {
			t.Fatal("no error")
		}
		a.mayPutAway(false)
		testkit.Equal(t, w.stored().State, breaker.Open, "it is not open")
	})
}

func TestMayPutAwayAsksTheStore(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		w.poll = time.Hour
		a := w.startPolling("a")
		w.hold()
		a.is(breaker.Closed) // so it believes
		a.mayPutAway(false)
		a.is(breaker.Held)
		w.resume()
		a.mayPutAway(true)
		a.is(breaker.Closed)
	})
}

func TestNothingPassesBeforeTheFirstGoodRead(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		f.setDown(true)
		a := w.startWith("a", f, watchable{f})
		waits := a.wait()
		pass(time.Hour)
		testkit.MustThat(t, !waits.passed(), "it has passed, and nobody knows what the circuit is")
		a.is("")
		if open, err := a.Failed(t.Context(), 1000); !open || err != nil {
			t.Errorf("open %v, %v", open, err)
		}
		f.setDown(false)
		pass(time.Second)
		testkit.That(t, waits.passed() && waits.pass == (Pass{}), "pass %+v, %v", waits.pass, waits.err)
		a.knows(0)
	})
}

func TestWhileTheStoreIsAwayTheLastKnownStateStays(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.store.setDown(true)
		pass(time.Minute)
		testkit.That(t, a.wait().passed(), "closed, it lets no calls through")
		if may, _, err := a.MayPutAway(t.Context(), AnyTerm, 1); may > 0 || !errors.Is(err, errDown) {
			t.Errorf("may put away: %v, %v", may, err)
		}
		if open, err := a.Failed(t.Context(), 5); open || err != nil {
			t.Errorf("few failures: %v, %v", open, err)
		}
		if open, err := a.Failed(t.Context(), 1); open || !errors.Is(err, errDown) {
			t.Errorf("too many: %v, %v", open, err)
		}
		a.store.setDown(false)
		pass(time.Second)
		a.is(breaker.Open)

		a.store.setDown(true)
		w.resume()
		pass(time.Minute)
		a.is(breaker.Open)
		waits := a.wait()
		testkit.That(t, !waits.passed(), "open, it lets calls through")
		a.store.setDown(false)
		pass(time.Second)
		testkit.That(t, waits.passed(), "closed again, it lets nothing through")
	})
}

func TestARecordThatCannotBeReadIsNoClosedCircuit(t *testing.T) { // F5
	inWorld(t, five, func(t *testing.T, w *world) {
		w.put("circuit/"+function, `{"state":"ajar"}`)
		a := w.start("a")
		waits := a.wait()
		pass(time.Minute)
		testkit.MustThat(t, !waits.passed(), "it has passed")
		w.put("circuit/"+function, `{"state":"closed","term":7}`)
		pass(time.Second)
		testkit.MustThat(t, waits.passed() && waits.pass.Term == 7, "%+v, %v", waits.pass, waits.err)
		w.put("circuit/"+function, `?`)
		pass(time.Second)
		a.is(breaker.Closed)
		if may, _, err := a.MayPutAway(t.Context(), AnyTerm, 1); may > 0 || !errors.Is(err, breaker.ErrUnreadable) {
			t.Errorf("may put away: %v, %v", may, err)
		}
		if _, err := Change(t.Context(), w.store, group, function, nil); !errors.Is(err, breaker.ErrUnreadable) {
			t.Errorf("an operator reads it: %v", err)
		}
	})
}

func TestARecordThatIsRemovedIsAClosedCircuit(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		a.failed(6, true)
		waits := a.wait()
		pass(five.Within) // or they would count for the new one, which begins with the same term
		w.remove(Prefix + function)
		pass(time.Second)
		a.is(breaker.Open) // a replica may lag behind
		pass(doubtful + time.Second)
		if a.is(breaker.Closed); !waits.passed() {
			t.Error("nothing passes")
		}
		a.failed(5, false)
		a.failed(1, true)
	})
}

func TestWaitEndsWithTheCallerOrThePartition(t *testing.T) { // F2
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		w.hold()
		pass(time.Second)
		leaves, cancelled, stays := a.wait(), a.wait(), a.wait()
		leaves.leave()
		cancelled.cancel()
		synctest.Wait()
		<-leaves.done
		<-cancelled.done
		if !errors.Is(leaves.err, ErrLeaving) || !errors.Is(cancelled.err, context.Canceled) || stays.passed() {
			t.Errorf("%v, %v", leaves.err, cancelled.err)
		}
		left := a.wait()
		left.leave()
		w.resume()
		pass(time.Second)
		testkit.That(t, stays.passed() && stays.pass == (Pass{Term: 2}), "%+v", stays.pass)
		after := a.wait() // closed: at once, whoever leaves
		after.leave()
		testkit.That(t, after.passed(), "%v", after.err)
	})
}

func TestChangedIsClosedWithEachChange(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		a := w.start("a")
		changed := a.Changed()
		a.failed(3, false)
		pass(time.Minute)
		select {
		case <-changed:
			t.Error("nothing has changed")
		default:
		}
		w.hold()
		pass(time.Second)
		<-changed
		a.is(breaker.Held)
	})
}

func TestHeldEndsByResumeAlone(t *testing.T) { // F7
	inWorld(t, breaker.Policy{Failures: 5, Probe: time.Second}, func(t *testing.T, w *world) {
		a := w.start("a")
		w.hold()
		pass(time.Second)
		waits := a.wait()
		a.failed(100, true)
		pass(24 * time.Hour)
		if r := w.stored(); r.State != breaker.Held || r.Term != 1 || waits.passed() {
			t.Errorf("%+v", r)
		}
		w.resume()
		pass(time.Second)
		testkit.That(t, waits.passed() && a.heard() == "closed→held held→closed", "heard %s", a.heard())
	})
}

func TestACircuitMayNeverOpenByItself(t *testing.T) {
	inWorld(t, breaker.Policy{Failures: -1}, func(t *testing.T, w *world) {
		a := w.start("a")
		a.failed(100_000, false)
		a.mayPutAway(true)
		w.hold()
		a.mayPutAway(false)
	})
}

func TestTheFirstReadReportsAHeldCircuit(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		w.hold()
		testkit.Equal(t, w.start("a").heard(), "closed→held", "heard")
		w.resume()
		testkit.Equal(t, w.start("b").heard(), "", "heard")
	})
}
