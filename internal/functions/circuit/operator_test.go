package circuit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor/memory"
)

func TestReadGivesWhatIsStored(t *testing.T) { // F7
	inWorld(t, five, func(t *testing.T, w *world) {
		a, b := w.start("a"), w.start("b")
		a.failed(2, false)
		b.failed(1, false)
		pass(time.Second)
		w.put("circuit/other", `{"state":"held","term":4,"incident":"x"}`)
		w.put("failures/third/c", `{"term":0,"buckets":[{"age":1,"n":2}],"total":9}`)
		w.put("failures/other/c", `{"term":3,"buckets":[{"age":1,"n":2}],"total":9}`)
		w.put("failures/third/d", `?`)

		all, err := Read(t.Context(), w.store, group, "")
		testkit.MustThat(t, err == nil && len(all) == 3, "%+v, %v", all, err)
		for i, want := range []struct {
			function string
			state    breaker.State
			failures int
			total    int64
			tallies  int
			stored   bool
		}{
			{"other", breaker.Held, 0, 9, 1, true}, // of an earlier term
			{"resize", breaker.Closed, 3, 3, 2, false},
			{"third", breaker.Closed, 2, 9, 1, false},
		} {
			s := all[i]
			if s.Function != want.function || s.Record.State != want.state || s.Failures != want.failures || s.Total != want.total ||
				len(s.Tallies) != want.tallies || (s.Version != "") != want.stored || s.Group != group {
				t.Errorf("%+v, want %+v", s, want)
			}
		}
		if one, err := Read(t.Context(), w.store, group, "resize"); err != nil || len(one) != 1 || one[0].Tallies["a"].Total != 2 {
			t.Errorf("%+v, %v", one, err)
		}
		if none, err := Read(t.Context(), w.store, group, "fourth"); err != nil || len(none) != 0 {
			t.Errorf("%+v, %v", none, err)
		}
	})
}

func TestReadNeverTakesWhatItCannotReadForAClosedCircuit(t *testing.T) {
	inWorld(t, five, func(t *testing.T, w *world) {
		w.put("circuit/good", `{"state":"open","term":4}`)
		w.put("circuit/bad", `?`)
		w.put("failures/bad/c", `{"term":0}`)
		if all, err := Read(t.Context(), w.store, group, ""); !errors.Is(err, breaker.ErrUnreadable) || len(all) != 1 || all[0].Function != "good" {
			t.Errorf("%+v, %v", all, err)
		}
		for _, op := range []string{"entries circuit", "entries failures"} {
			f := newFaulty(w.store)
			f.set(f.deny, op, 1)
			if all, err := Read(t.Context(), f, group, ""); !errors.Is(err, errDown) || all != nil {
				t.Errorf("%+v, %v", all, err)
			}
		}
	})
}

func holding(r breaker.Record) (breaker.Record, bool) {
	return breaker.Hold(r, "by-hand", "ann", "let me look", time.Now())
}

func TestChangeSaysWhatTheCircuitIsThen(t *testing.T) { // F7
	inWorld(t, five, func(t *testing.T, w *world) {
		if r := w.hold(); r.State != breaker.Held || r.Term != 1 || r.By != "ann" {
			t.Errorf("%+v", r)
		}
		if r := w.hold(); r.State != breaker.Held || r.Term != 1 {
			t.Errorf("held twice it is %+v", r)
		}
		if r := w.resume(); r.State != breaker.Closed || r.Term != 2 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAChangeWhoseAnswerIsLostIsMadeOnce(t *testing.T) { // F7
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		f.set(f.lose, "put circuit", 1)
		asked := 0
		r, err := Change(t.Context(), f, group, function, func(r breaker.Record) (breaker.Record, bool) {
			asked++
			return holding(r)
		})
		if err != nil || r.State != breaker.Held || r.Term != 1 || asked != 1 {
			t.Errorf("%+v, %v, asked %d times", r, err, asked)
		}
		f.set(f.deny, "put circuit", 2)
		r, err = Change(t.Context(), f, group, function, func(r breaker.Record) (breaker.Record, bool) {
			return breaker.Resume(r, "ann", "", time.Now())
		})
		testkit.That(t, err == nil && r.Closed() && r.Term == 2, "%+v, %v", r, err)
	})
}

func TestAChangeThatIsNotKnownToBeMadeIsAnError(t *testing.T) { // F7
	inWorld(t, five, func(t *testing.T, w *world) {
		f := newFaulty(w.store)
		f.set(f.deny, "put circuit", 1000)
		testkit.ErrorIs(t, testkit.Err(Change(t.Context(), f, group, function, holding)), errDown)
		f.setDown(true)
		testkit.ErrorIs(t, testkit.Err(Change(t.Context(), f, group, function, holding)), errDown)
		if r := w.stored(); r.Term != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestChangesThatRaceAreAllMade(t *testing.T) { // F7
	inWorld(t, five, func(t *testing.T, w *world) {
		for range 20 {
			go func() {
				_, err := Change(t.Context(), w.store, group, function, func(r breaker.Record) (breaker.Record, bool) {
					time.Sleep(time.Millisecond) // for others to come between
					if next, ok := holding(r); ok {
						return next, true
					}
					return breaker.Resume(r, "ann", "", time.Now())
				})
				testkit.Check(t, err)
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := w.stored(); r.Term != 20 {
			t.Errorf("%+v", r)
		}
	})
}

func TestWaitCostsNothingWhileClosed(t *testing.T) { // F8
	m := closedMember(t)
	leaving := make(chan struct{})
	if n := testing.AllocsPerRun(100, func() {
		testkit.Must(t, testkit.Err(m.Wait(t.Context(), leaving)))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func closedMember(t testing.TB) *Member {
	t.Helper()
	m := New(Config{Store: memory.New(), Group: group, Function: function, Instance: "a", Log: quiet})
	testkit.Must(t, m.look(t.Context()))
	return m
}

func BenchmarkWait(b *testing.B) {
	m := closedMember(b)
	ctx, leaving := context.Background(), make(chan struct{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			testkit.Check(b, testkit.Err(m.Wait(ctx, leaving)))
		}
	})
}

// A failure costs a sum over what the others have.
func BenchmarkFailed(b *testing.B) {
	m := closedMember(b)
	m.cfg.Policy.Failures = 1 << 29
	now := time.Now()
	for range 50 {
		var w breaker.Window
		for i := range 100 {
			w.Add(0, 1, now.Add(time.Duration(i)*time.Millisecond))
		}
		m.others = append(m.others, breaker.Seen{Tally: w.Tally(time.Minute, now), At: now})
	}
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, testkit.Err(m.Failed(b.Context(), 1)))
	}
}
