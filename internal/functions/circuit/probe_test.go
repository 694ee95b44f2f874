package circuit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
)

var probes = breaker.Policy{Failures: 5, Within: 30 * time.Second, Probe: 10 * time.Second, ProbeMax: time.Minute}

// passedOf gives those who have come through.
func passedOf(waiters []*waiter) (through []*waiter) {
	for _, w := range waiters {
		if w.passed() {
			through = append(through, w)
		}
	}
	return through
}

// opened is a world with members whose circuit is open.
func opened(w *world, ids ...string) (members []*played) {
	for _, id := range ids {
		members = append(members, w.start(id))
	}
	members[0].failed(6, true)
	pass(time.Second)
	return members
}

// probing is opened, with the first member as the prober and its pass.
func probing(t *testing.T, w *world, ids ...string) ([]*played, Pass) {
	t.Helper()
	all := opened(w, ids...)
	waits := all[0].wait()
	pass(10 * time.Second)
	testkit.MustThat(t, waits.passed() && waits.pass.Probe, "%s does not probe: %+v, %v", ids[0], waits.pass, waits.err)
	return all, waits.pass
}

func (p *played) probed(pass Pass, ok bool) {
	p.w.t.Helper()
	testkit.Must(p.w.t, p.Probed(p.w.t.Context(), pass, ok, breaker.Sample{Error: "still no"}))
}

func TestOneOfAllTriesOneEvent(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		all := opened(w, "a", "b", "c")
		var waiters []*waiter
		of := map[*waiter]*played{}
		for _, m := range all {
			for range 4 {
				waits := m.wait()
				waiters = append(waiters, waits)
				of[waits] = m
			}
		}
		pass(8 * time.Second)
		testkit.MustEqual(t, len(passedOf(waiters)), 0, "before its time … have come through")
		pass(2 * time.Second)
		through := passedOf(waiters)
		testkit.MustThat(t, len(through) == 1 && through[0].pass.Probe, "%d have come through", len(through))
		prober := of[through[0]]
		pass(time.Second)
		for _, m := range all {
			m.is(breaker.HalfOpen)
			m.mayPutAway(false)
		}
		if r := w.stored(); r.Prober != prober.id || r.Term != 2 || r.Term != through[0].pass.Term {
			t.Errorf("%+v", r)
		}
		prober.probed(through[0].pass, true)
		prober.is(breaker.Closed)
		pass(time.Second)
		if n := len(passedOf(waiters)); n != len(waiters) {
			t.Errorf("closed, but only %d of %d have come through", n, len(waiters))
		}
		for _, m := range all {
			if m.is(breaker.Closed); m.heard() != "closed→open open→half-open half-open→closed" {
				t.Errorf("%s heard %s", m.id, m.heard())
			}
		}
	})
}

func TestAFailedProbeDoublesTheWait(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		a := opened(w, "a")[0]
		opened := w.stored()
		wait := 9 * time.Second // as a second has gone by
		for _, next := range []time.Duration{20, 40, 60, 60} {
			waits := a.wait()
			pass(wait - time.Millisecond)
			testkit.MustThat(t, !waits.passed(), "it is tried before %v are over", wait)
			pass(2 * time.Millisecond)
			testkit.MustThat(t, waits.passed(), "it is not tried after %v", wait)
			a.probed(waits.pass, false)
			a.is(breaker.Open)
			wait = next * time.Second
		}
		if r := w.stored(); r.Trips != 4 || r.Incident != opened.Incident || !strings.Contains(r.Reason, "still no") || r.Failures != 6 {
			t.Errorf("%+v", r)
		}
	})
}

func TestNobodyProbesWithoutAnEventToTry(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		a := opened(w, "a")[0]
		pass(time.Hour)
		a.is(breaker.Open)
		waits := a.wait()
		pass(10 * time.Millisecond)
		testkit.That(t, waits.passed() && waits.pass.Probe, "%+v", waits.pass)
	})
}

func TestAProbeThatIsReturnedIsSoonAnothers(t *testing.T) { // F2, F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, pass1 := probing(t, w, "a", "b")
		b := all[1].wait()
		all[0].Returned(pass1)
		all[0].Returned(pass1) // is of no use
		pass(500 * time.Millisecond)
		if r := w.stored(); r.State != breaker.Open || r.Trips != 0 || !r.Untried {
			t.Errorf("%+v", r)
		}
		pass(time.Second)
		testkit.MustThat(t, b.passed() && b.pass.Probe, "%+v", b.pass)
		all[0].probed(pass1, true) // too late
		all[1].is(breaker.HalfOpen)
		all[1].probed(b.pass, true)
		all[1].is(breaker.Closed)
	})
}

func TestAProbeWhoseWaiterLeftIsGivenToTheNextOrBack(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		a := opened(w, "a")[0]
		a.store.set(a.store.lose, "put circuit", 1000) // so that nobody is given a probe before it is read
		one, two := a.wait(), a.wait()
		pass(8900 * time.Millisecond)
		one.leave()
		pass(time.Second)
		testkit.MustThat(t, !one.passed() && two.passed() && two.pass.Probe, "%+v, %v", two.pass, two.err)
		a.store.set(a.store.lose, "put circuit", 0)
		a.probed(two.pass, false)

		// The waiter is gone when the record is written.
		three := a.wait()
		a.store.slow("put circuit", time.Second)
		pass(20*time.Second + 500*time.Millisecond)
		three.leave()
		pass(3 * time.Second)
		if r := w.stored(); r.State != breaker.Open || !r.Untried {
			t.Errorf("%+v", r)
		}
	})
}

func TestWhoLeavesTakesNoProbe(t *testing.T) { // F2, F7
	m := closedMember(t)
	m.adopt(breaker.Record{State: breaker.HalfOpen, Term: 1, Incident: "x", Prober: "a"}, "1")
	leaving := make(chan struct{})
	close(leaving)
	if p, err := m.Wait(t.Context(), leaving); !errors.Is(err, ErrLeaving) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := m.Wait(t.Context(), nil); err != nil || p != (Pass{Term: 1, Probe: true}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAProberThatDiesIsReplaced(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, _ := probing(t, w, "a", "b")
		b := all[1].wait()
		all[0].die()
		pass(breaker.ProbeDeadline - 2*time.Second) // it has been probing for a second
		testkit.MustThat(t, !b.passed(), "it has not waited")
		pass(2 * time.Second)
		testkit.MustThat(t, b.passed() && b.pass.Probe && w.stored().Prober == "b", "%+v, %+v", b.pass, w.stored())
		all[1].probed(b.pass, true)
		all[1].is(breaker.Closed)
	})
}

func TestAProberThatComesBackTakesItsProbeUp(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, _ := probing(t, w, "a")
		all[0].die()
		again := w.start("a")
		waits := again.wait()
		pass(2 * time.Second) // nobody waited when it came: it was given back
		testkit.MustThat(t, waits.passed() && waits.pass.Probe, "%+v, %+v", waits.pass, w.stored())
	})
}

func TestTheOthersHearWhatALongProbeTries(t *testing.T) { // F7, V4
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, first := probing(t, w, "a", "b")
		testkit.MustThat(t, w.stored().Tries == nil, "it tries %v before that was said", w.stored().Tries)
		all[0].Trying(Pass{Term: first.Term - 1, Probe: true}, "1", 2) // of a probe that is over
		all[0].Trying(first, "7", 41)
		pass(triesAfter / 2)
		testkit.MustThat(t, w.stored().Tries == nil, "a probe that may soon be over is written")
		pass(2 * time.Second)
		tries := w.stored().Tries
		testkit.MustThat(t, tries != nil && *tries == breaker.Event{Partition: "7", Sequence: 41}, "it tries %v", tries)
		pass(3 * breaker.ProbeDeadline)
		testkit.MustThat(t, w.stored().Term == first.Term && w.stored().Tries != nil, "%+v", w.stored())
		all[0].probed(first, false)
		testkit.MustThat(t, w.stored().State == breaker.Open && w.stored().Tries == nil, "%+v", w.stored())
	})
}

func TestALongProbeIsNotTakenOver(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, first := probing(t, w, "a", "b")
		a, b := all[0].wait(), all[1].wait()
		changed := all[1].Changed()
		pass(4 * breaker.ProbeDeadline)
		if r := w.stored(); r.Term != first.Term || b.passed() {
			t.Fatalf("%+v", r)
		}
		all[0].store.setDown(true) // nor by itself, if it could not tell that it lives
		all[1].leave()
		pass(2 * breaker.ProbeDeadline)
		all[0].store.setDown(false)
		pass(2 * time.Second)
		if r := w.stored(); r.Term != first.Term || a.passed() {
			t.Fatalf("%+v", r)
		}
		select {
		case <-changed:
			t.Error("that the prober lives is no change")
		default:
		}
		all[0].probed(first, true)
		pass(time.Second)
		testkit.That(t, a.passed() && !a.pass.Probe, "%+v", a.pass)
	})
}

func TestAProbeThatHangsIsTakenOverInTheEnd(t *testing.T) { // F7
	for _, who := range []string{"another", "itself"} {
		t.Run(who, func(t *testing.T) {
			inWorld(t, probes, func(t *testing.T, w *world) {
				all, first := probing(t, w, "a", "b")
				next := all[1]
				if who == "itself" {
					next.leave()
					next = all[0]
				}
				waits := next.wait()
				pass(proveUntil + 2*breaker.ProbeDeadline)
				testkit.MustThat(t, waits.passed() && waits.pass.Probe, "%+v", w.stored())
				all[0].probed(first, true)
				next.is(breaker.HalfOpen)
			})
		})
	}
}

func TestAnOperatorsHoldDuringAProbeWins(t *testing.T) { // F7
	for _, ok := range []bool{true, false} {
		inWorld(t, probes, func(t *testing.T, w *world) {
			all, first := probing(t, w, "a", "b")
			held := w.hold()
			all[0].probed(first, ok)
			pass(time.Hour)
			if r := w.stored(); r.State != breaker.Held || r.Term != held.Term {
				t.Errorf("%+v", r)
			}
			all[0].is(breaker.Held)
		})
	}
}

func TestAnOperatorsResumeDuringAProbeWins(t *testing.T) { // F7
	for _, ok := range []bool{true, false} {
		inWorld(t, probes, func(t *testing.T, w *world) {
			all, first := probing(t, w, "a", "b")
			closed := w.resume()
			all[0].probed(first, ok)
			all[0].Returned(first)
			pass(time.Hour)
			if r := w.stored(); r.State != breaker.Closed || r.Term != closed.Term {
				t.Errorf("%+v", r)
			}
			if all[0].is(breaker.Closed); !all[0].wait().passed() {
				t.Error("nothing passes")
			}
		})
	}
}

func TestALostAnswerInProbing(t *testing.T) { // F7
	inWorld(t, probes, func(t *testing.T, w *world) {
		a := opened(w, "a")[0]
		a.store.set(a.store.lose, "put circuit", 1)
		waits := a.wait()
		pass(10 * time.Second)
		testkit.MustThat(t, waits.passed() && w.stored().Term == 2, "%+v", w.stored())
		a.store.set(a.store.lose, "put circuit", 1)
		a.probed(waits.pass, true)
		if r := w.stored(); r.State != breaker.Closed || r.Term != 3 {
			t.Errorf("%+v", r)
		}
		testkit.Equal(t, a.heard(), "closed→open open→half-open half-open→closed", "heard")
	})
}

func TestTheEndOfAProbeIsStoredWhenTheStoreIsBack(t *testing.T) { // F7
	for name, end := range map[string]func(*played, Pass){
		"told with patience": func(a *played, p Pass) {
			go func() {
				testkit.Check(a.w.t, a.Probed(a.w.t.Context(), p, true, breaker.Sample{}))
			}()
		},
		"told in a hurry": func(a *played, p Pass) {
			ctx, cancel := context.WithCancel(a.w.t.Context())
			cancel()
			if err := a.Probed(ctx, p, true, breaker.Sample{}); err == nil {
				a.w.t.Error("no error")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, probes, func(t *testing.T, w *world) {
				all, first := probing(t, w, "a", "b")
				all[0].store.setDown(true)
				end(all[0], first)
				pass(time.Minute)
				all[0].is(breaker.HalfOpen)
				all[0].store.setDown(false)
				pass(1500 * time.Millisecond)
				all[0].is(breaker.Closed)
				all[1].is(breaker.Closed)
			})
		})
	}
}

func TestAProbeThatIsReturnedAfterRunIsStored(t *testing.T) { // P11
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, first := probing(t, w, "a", "b")
		all[0].leave()
		if r := w.stored(); r.State != breaker.HalfOpen {
			t.Fatalf("%+v", r)
		}
		all[0].Returned(first)
		if r := w.stored(); r.State != breaker.Open || !r.Untried {
			t.Errorf("%+v", r)
		}
	})
}

func TestAProbeThatIsReturnedBeforeRunEndsIsStored(t *testing.T) { // P11
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, first := probing(t, w, "a", "b")
		all[0].Returned(first)
		all[0].stop()
		synctest.Wait()
		if r := w.stored(); r.State != breaker.Open || !r.Untried {
			t.Errorf("%+v", r)
		}
	})
}

func TestAPassThatIsNoProbeEndsNothing(t *testing.T) {
	inWorld(t, probes, func(t *testing.T, w *world) {
		all, first := probing(t, w, "a")
		all[0].probed(Pass{Term: first.Term}, true)
		all[0].Returned(Pass{Term: first.Term})
		pass(time.Second)
		all[0].is(breaker.HalfOpen)
	})
}

func TestAnEndedContextGivesItsCause(t *testing.T) { // F2
	inWorld(t, probes, func(t *testing.T, w *world) {
		a := opened(w, "a")[0]
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := errors.New("lease lost")
		cancel(lost)
		testkit.ErrorIs(t, testkit.Err(a.Wait(ctx, nil)), lost)
		w.resume()
		pass(time.Second)
		a.failed(5, false)
		if _, _, err := a.MayPutAway(ctx, AnyTerm, 1); err == nil {
			t.Error("no error")
		}
	})
}
