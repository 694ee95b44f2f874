package triage

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
)

// show is a record in lines.
func (w Work) show() []string {
	lines := shows(w.Units)
	if len(w.Away) > 0 {
		lines = append(lines, "away "+w.Away.String())
	}
	if w.Intent != nil {
		lines = append(lines, "intent "+ranges.SetOf(w.Intent.Sequence).String())
	}
	for _, i := range w.Waiting {
		lines = append(lines, "waiting "+ranges.SetOf(i.Sequence).String())
	}
	if w.Suspect() {
		lines = append(lines, "suspect")
	}
	return lines
}

const died = ` "the instance died in the call"`

// F2, F3: attempts survive whoever comes next, and only those who died in a call have died.
func TestBegin(t *testing.T) {
	last := Work{Epoch: 7, Instance: "a", Begun: 9}
	with := func(change func(*Work)) Work {
		w := last
		change(&w)
		return w
	}
	for _, test := range []struct {
		name       string
		last       Work
		checkpoint int64
		want       []string
		due        []string
		stalls     int
	}{
		{"nobody was there before", Work{}, -1, nil, nil, 0},
		{"the last died at once", last, 9, nil, nil, 1},
		{"the last had come further", last, 10, nil, nil, 0},
		{"the last ended well", with(func(w *Work) { w.Clean = true }), 9, nil, nil, 0},
		{"the third in a row makes suspicious", with(func(w *Work) { w.Stalls = 2 }), 9, []string{"suspect"}, nil, 3},
		{"the fourth stays so", with(func(w *Work) { w.Stalls = 3 }), 9, []string{"suspect"}, nil, 4},
		{"a good ending in between proves nothing", with(func(w *Work) { w.Stalls, w.Clean = 3, true }), 9, []string{"suspect"}, nil, 3},
		{"getting on does", with(func(w *Work) { w.Stalls = 3 }), 10, nil, nil, 0},
		{"a unit that waited keeps its numbers",
			with(func(w *Work) { w.Put(Unit{Events: set("11-12"), Attempts: 2, Used: 1, Halved: true, Reason: "no"}) }), 9,
			[]string{`11-12 a2/1 halved "no"`}, nil, 1},
		{"the first death in a call is known, but held against nobody",
			with(func(w *Work) { w.Put(Unit{Events: set("11"), Attempts: 2, Used: 1, Calling: true}) }), 9,
			[]string{`11 a2/1 d1/0` + died}, nil, 1},
		{"the second counts, as that call was alone",
			with(func(w *Work) { w.Put(Unit{Events: set("11"), Attempts: 2, Deaths: 1, Calling: true}) }), 9,
			[]string{`11 a2/0 d2/1` + died}, nil, 1},
		{"under suspicion every call was", with(func(w *Work) { w.Stalls = 3; w.Put(Unit{Events: set("10-12"), Calling: true}) }), 9,
			[]string{`10-12 a0/0 d1/1` + died, "suspect"}, nil, 4},
		{"a call that was cancelled in good order counts nothing",
			with(func(w *Work) { w.Clean = true; w.Put(Unit{Events: set("11"), Deaths: 1, Calling: true}) }), 9,
			[]string{`11 a0/0 d1/0`}, nil, 0},
		{"nor is one kept of which nothing is known",
			with(func(w *Work) { w.Clean, w.Stalls = true, 3; w.Put(Unit{Events: set("11"), Calling: true}) }), 9,
			[]string{"suspect"}, nil, 3},
		{"too many deaths of several divide them",
			with(func(w *Work) { w.Put(Unit{Events: set("11-14"), Deaths: 3, Counted: 2, Calling: true}) }), 9,
			[]string{`11-12 a0/0 d4/2` + died, `13-14 a0/0 d4/2` + died}, nil, 1},
		{"too many deaths of one are its failure", with(func(w *Work) { w.Put(Unit{Events: set("11"), Deaths: 3, Counted: 2, Calling: true}) }), 9,
			[]string{`11 a0/0 d4/3` + died}, []string{`away 11 a0/0 d4/3` + died}, 1},
		{"which is not forgotten before it is put away", with(func(w *Work) { w.Put(Unit{Events: set("11"), Deaths: 4, Counted: 3}) }), 9,
			[]string{`11 a0/0 d4/3`}, []string{`away 11 a0/0 d4/3`}, 1},
		{"what was passed is forgotten", with(func(w *Work) {
			w.Put(Unit{Events: set("10-20"), Attempts: 1, Deaths: 1, Counted: 1})
			w.Put(Unit{Events: set("21"), Attempts: 3})
			w.Away = set("12,18,30")
		}), 15, []string{`16-20 a1/0 d1/1`, `21 a3/0`, "away 18,30"}, nil, 0},
		{"a death in company is not held against who is left",
			with(func(w *Work) { w.Put(Unit{Events: set("10-12"), Deaths: 1, Counted: 1, Calling: true}) }), 11,
			[]string{`12 a0/0 d2/0` + died}, nil, 0},
		{"an intent ahead is kept", with(func(w *Work) { w.Intent = &Intent{Sequence: 12} }), 11, []string{"intent 12"}, nil, 0},
		{"and one that waits", with(func(w *Work) { w.Waiting = []Intent{{Sequence: 10}, {Sequence: 12}} }), 11, []string{"waiting 12"}, nil, 0},
		{"one that an operator has passed is abandoned", with(func(w *Work) { w.Intent = &Intent{Sequence: 12} }), 12, nil, nil, 0},
		{"who rewinds wants everything again", with(func(w *Work) {
			w.Stalls = 3
			w.Put(Unit{Events: set("11"), Attempts: 1, Calling: true})
			w.Away, w.Intent, w.Waiting = set("12,18"), &Intent{Sequence: 14}, []Intent{{Sequence: 15}}
		}), 8, nil, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.last.show()
			next, due := test.last.Begin(Policy{}, 8, "b", test.checkpoint)
			testkit.Diff(t, test.want, next.show())
			testkit.Diff(t, test.due, shows(due))
			if next.Stalls != test.stalls || next.Begun != test.checkpoint || next.Clean || !next.Owned(8, "b") {
				t.Errorf("stalls %d, want %d; begun %d, clean %v, by %s in epoch %d",
					next.Stalls, test.stalls, next.Begun, next.Clean, next.Instance, next.Epoch)
			}
			testkit.Diff(t, before, test.last.show())
		})
	}
}

// F2, F4
func TestDied(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy Policy
		unit   Unit
		want   []string
	}{
		{"a death uses up no retry", Policy{}, Unit{Events: set("1-4"), Calling: true},
			[]string{`1-4 a0/0 d1/1` + died}},
		{"at the limit several are divided, and the next death divides again", Policy{}, Unit{Events: set("1-4"), Deaths: 2, Counted: 2},
			[]string{`1-2 a0/0 d3/2` + died, `3-4 a0/0 d3/2` + died}},
		{"a single half has to be found guilty alone", Policy{}, Unit{Events: set("1-3"), Deaths: 3, Counted: 2},
			[]string{`1-2 a0/0 d4/2` + died, `3 a0/0 d4/0` + died}},
		{"by the last three of many", Policy{Retries: 9}, Unit{Events: set("1-2"), Attempts: 4, Used: 4, Deaths: 9, Counted: 9},
			[]string{`1 a4/4 d10/7` + died, `2 a4/4 d10/7` + died}},
		{"one event is condemned", Policy{}, Unit{Events: set("1"), Deaths: 6, Counted: 2},
			[]string{`1 a0/0 d7/3` + died}},
		{"for ever too", Policy{Retries: -1}, Unit{Events: set("1"), Deaths: 2, Counted: 2},
			[]string{`1 a0/0 d3/3` + died}},
		{"not before the retries' number", Policy{Retries: 4}, Unit{Events: set("1"), Deaths: 3, Counted: 3},
			[]string{`1 a0/0 d4/4` + died}},
		{"what was halved stays so", Policy{}, Unit{Events: set("1"), Attempts: 3, Halved: true, Calling: true},
			[]string{`1 a3/0 d1/1 halved` + died}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, shows(test.policy.died(test.unit, true)))
		})
	}
}

// P1: who has lost the lease changes nothing.
func TestBeginOfTheWrongOwner(t *testing.T) {
	last := Work{Epoch: 7, Instance: "a", Begun: 9, Stalls: 2, Units: []Unit{{Events: set("10"), Deaths: 5, Counted: 3, Calling: true}}}
	for _, owner := range []struct {
		epoch    int64
		instance string
	}{{6, "a"}, {6, "b"}, {7, "b"}, {0, ""}} {
		t.Run(fmt.Sprintf("%q in epoch %d", owner.instance, owner.epoch), func(t *testing.T) {
			next, due := last.Begin(Policy{}, owner.epoch, owner.instance, 9)
			if !cmp.Equal(next, last) || due != nil || next.Owned(owner.epoch, owner.instance) {
				t.Errorf("began with %v, %v", next, due)
			}
		})
	}
}

// P7: the same owner begins again where an operator has moved the checkpoint; nobody has died.
func TestBeginAgain(t *testing.T) {
	w := Work{Epoch: 7, Instance: "a", Begun: 9, Stalls: 1, Away: set("14"), Units: []Unit{{Events: set("10-12"), Attempts: 1, Calling: true}}}
	for _, test := range []struct {
		name       string
		checkpoint int64
		want       []string
		stalls     int
	}{
		{"not at all", 9, []string{"10-12 a1/0 calling", "away 14"}, 1},
		{"forward", 10, []string{"11-12 a1/0 calling", "away 14"}, 0},
		{"back", 5, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			next, _ := w.Begin(Policy{}, 7, "a", test.checkpoint)
			testkit.Diff(t, test.want, next.show())
			testkit.Slices(t, []any{next.Stalls, next.Begun}, []any{test.stalls, test.checkpoint}, "stalls")
		})
	}
}

// F4: a number under which something may be stored is not used for something else, which would be
// taken for a repeat.
func TestAnAbandonedIntentTakesItsProducerAlong(t *testing.T) {
	w := Work{Epoch: 7, Instance: "a", Begun: 9, Producer: 55, Number: 3}
	w.Intend(Unit{Events: set("12"), Attempts: 1}, "0", 77)
	for name, checkpoint := range map[string]int64{"passed": 20, "rewound": 2} {
		if next, _ := w.Begin(Policy{}, 8, "b", checkpoint); next.Intent != nil || next.Producer != 0 || next.Number != 0 {
			t.Errorf("%s: intent %v, producer %d, number %d", name, next.Intent, next.Producer, next.Number)
		}
	}
	if next, _ := w.Begin(Policy{}, 8, "b", 11); next.Intent == nil || next.Intent.Number != 3 || next.Producer != 55 || next.Number != 3 {
		t.Errorf("taken over: intent %v, producer %d, number %d", next.Intent, next.Producer, next.Number)
	}
	w.Sent(12)
	if next, _ := w.Begin(Policy{}, 8, "b", 2); next.Producer != 55 || next.Number != 4 {
		t.Errorf("rewound without intent: producer %d, number %d", next.Producer, next.Number)
	}
}

// F2, F3
func TestPlan(t *testing.T) {
	w := Work{Units: []Unit{{Events: set("3-4,8"), Attempts: 2, Used: 1, Deaths: 2, Counted: 2}, {Events: set("9-10"), Attempts: 1, Calling: true}}}
	for _, test := range []struct {
		name   string
		work   Work
		events []int64
		want   []string
	}{
		{"nothing is nothing", Work{}, nil, nil},
		{"without a record all are one", Work{}, []int64{1, 2, 3}, []string{"1-3 a0/0"}},
		{"also where a lane has only some", Work{}, []int64{1, 4, 9}, []string{"1,4,9 a0/0"}},
		{"what is away is left out", Work{Away: set("2,4-9")}, []int64{1, 2, 3, 5, 10}, []string{"1,3,10 a0/0"}},
		{"even if that is all", Work{Away: set("1-9")}, []int64{1, 2}, nil},
		{"a recorded unit comes whole", w, []int64{3, 4, 8}, []string{"3-4,8 a2/1 d2/2"}},
		{"fresh ones before and behind are apart", w, []int64{1, 2, 3, 4, 8, 11, 12}, []string{"1-2 a0/0", "3-4,8 a2/1 d2/2", "11-12 a0/0"}},
		{"a part has its numbers", w, []int64{4, 8}, []string{"4,8 a2/1 d2/2"}},
		{"but for deaths in company, if it is a single event", w, []int64{4}, []string{"4 a2/1 d2/0"}},
		{"order goes before company", w, []int64{3, 4, 5, 8}, []string{"3-4 a2/1 d2/2", "5 a0/0", "8 a2/1 d2/0"}},
		{"units side by side stay apart", w, []int64{8, 9, 10}, []string{"8 a2/1 d2/0", "9-10 a1/0"}},
		{"the intent is by itself", Work{Intent: &Intent{Sequence: 2, Attempts: 4, Deaths: 1, Reason: "no"}}, []int64{1, 2, 3},
			[]string{"1 a0/0", `2 a4/0 d1/0 "no"`, "3 a0/0"}},
		{"also in a unit", Work{Intent: &Intent{Sequence: 9, Attempts: 4}, Units: w.Units}, []int64{9, 10}, []string{"9 a4/0", "10 a1/0"}},
		{"so are those that wait", Work{Waiting: []Intent{{Sequence: 2, Attempts: 1}, {Sequence: 3, Attempts: 2}}}, []int64{1, 2, 3},
			[]string{"1 a0/0", "2 a1/0", "3 a2/0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, shows(test.work.Plan(test.events)))
		})
	}
}

// F2: what comes in parts is recorded in parts.
func TestPutOfAPart(t *testing.T) {
	w := Work{Units: []Unit{{Events: set("3-4,8"), Attempts: 2, Deaths: 2, Counted: 2}}}
	old := w
	u := w.Plan([]int64{4})[0]
	u.Calling = true
	w.Put(u)
	testkit.Diff(t, []string{"3,8 a2/0 d2/2", "4 a2/0 d2/0 calling"}, w.show())
	w.Drop(set("3"))
	testkit.Diff(t, []string{"4 a2/0 d2/0 calling", "8 a2/0 d2/0"}, w.show())
	w.Put(Unit{Events: set("4-5")})
	testkit.Diff(t, []string{"8 a2/0 d2/0"}, w.show())
	w.Put(Unit{Attempts: 1})
	testkit.Diff(t, []string{"8 a2/0 d2/0"}, w.show())
	testkit.Diff(t, []string{"3-4,8 a2/0 d2/2"}, old.show())
}

func TestCopiesAreApart(t *testing.T) {
	a := Work{Producer: 5}
	for i := range int64(5) { // so that the slices have room
		a.Put(Unit{Events: ranges.SetOf(i * 10), Attempts: 1})
	}
	a.Intend(a.Units[0], "0", 5)
	before := a.show()
	b, c := a, a
	b.Put(Unit{Events: set("5"), Attempts: 7})
	c.Put(Unit{Events: set("6"), Attempts: 8})
	b.Renumber(0, 9)
	b.Sent(0)
	c.Passed(20)
	testkit.Diff(t, before, a.show())
	testkit.Diff(t, []string{"5 a7/0", "10 a1/0", "20 a1/0", "30 a1/0", "40 a1/0", "away 0"}, b.show())
	testkit.Diff(t, []string{"30 a1/0", "40 a1/0"}, c.show())
	testkit.Slices(t, []int64{int64(a.Intent.Number), a.Producer}, []int64{0, 5}, "number and producer")
}

func TestSettle(t *testing.T) {
	w := Work{Units: []Unit{{Events: set("1-6"), Attempts: 1, Calling: true}, {Events: set("9"), Attempts: 5}}}
	w.Settle([]Part{
		{Unit: Unit{Events: set("1-2")}, Do: Finish},
		{Unit: Unit{Events: set("3"), Attempts: 2}, Do: PutAway},
		{Unit: Unit{Events: set("4"), Attempts: 2}, Do: Call},
		{Unit: Unit{Events: set("5-6")}, Do: Call},
	})
	testkit.Diff(t, []string{"3 a2/0", "4 a2/0", "9 a5/0"}, w.show())
}

func TestPassed(t *testing.T) {
	w := Work{Begun: 5, Stalls: 3, Away: set("7,9"), Units: []Unit{{Events: set("6-8"), Attempts: 1}}}
	w.Passed(5)
	testkit.Diff(t, []string{"6-8 a1/0", "away 7,9", "suspect"}, w.show())
	w.Passed(4)
	testkit.Equal(t, w.Begun, 5, "begun at")
	w.Passed(7)
	testkit.Diff(t, []string{"8 a1/0", "away 9"}, w.show())
	testkit.Equal(t, w.Begun, 7, "begun at")
	w.Passed(9)
	testkit.Slices(t, w.show(), nil)
}

// F8: the happy path records nothing.
func TestWhatIsRecordedAndAlone(t *testing.T) {
	calm, suspicious := Work{Stalls: 2}, Work{Stalls: 3}
	testkit.Slices(t, []bool{calm.Calm(), suspicious.Calm()}, []bool{true, false}, "calm")
	for _, test := range []struct {
		name           string
		work           Work
		unit           Unit
		recorded, wary bool
	}{
		{"a fresh one", calm, Unit{Events: set("1")}, false, false},
		{"one that failed is recorded", calm, Unit{Events: set("1"), Attempts: 1}, true, false},
		{"one that died is alone", calm, Unit{Events: set("1"), Deaths: 1}, true, true},
		{"not any more when five calls have ended", calm, Unit{Events: set("1"), Attempts: 7, Deaths: 1, Ended: 5}, true, false},
		{"all are under suspicion", suspicious, Unit{Events: set("1")}, true, true},
		{"but for one whose call has ended", suspicious, Unit{Events: set("1"), Attempts: 1}, true, false},
		{"and died in the next", suspicious, Unit{Events: set("1"), Attempts: 1, Deaths: 1}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if recorded, wary := test.work.Recorded(test.unit), test.work.Wary(test.unit); recorded != test.recorded || wary != test.wary {
				t.Errorf("recorded %v, wary %v", recorded, wary)
			}
		})
	}
}

// F8: units whose calls end hold nobody up for long, be it under suspicion, and retried for ever.
func TestCallsThatEndLiftTheSuspicion(t *testing.T) {
	p := Policy{Retries: -1}
	for name, test := range map[string]struct {
		units  []Unit
		stalls int
		ends   int
	}{
		"after a death":            {[]Unit{{Events: set("10-12"), Attempts: 4, Calling: true}}, 0, acquitted},
		"after a death alone":      {[]Unit{{Events: set("10-12"), Deaths: 1, Calling: true}}, 0, acquitted},
		"after a death of a fresh": {[]Unit{{Events: set("10-12"), Calling: true}}, 3, acquitted},
		"under suspicion":          {nil, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := Work{Epoch: 7, Instance: "a", Begun: 9, Stalls: test.stalls, Units: test.units}.Begin(p, 8, "b", 9)
			for range test.ends {
				u := w.Plan([]int64{10, 11, 12})[0]
				if !w.Wary(u) {
					t.Errorf("%v is not called alone", u.show())
				}
				w.Settle(p.After(u, failed, nil, 0.5))
			}
			if u := w.Plan([]int64{10, 11, 12})[0]; w.Wary(u) || !w.Recorded(u) || u.Counted > 0 {
				t.Errorf("after %d calls that ended %v is called alone, or not recorded", test.ends, u.show())
			}
			testkit.Equal(t, w.Wary(w.Plan([]int64{13})[0]), w.Suspect(), "another is called alone")
		})
	}
}

// F2, F4: kills from outside do not add up where calls have ended in between, if an event is
// retried for ever. But an event of which an instance dies each second time is put away in the end.
func TestKillsFarApartDoNotAddUp(t *testing.T) {
	p := Policy{Retries: -1}
	for ends, condemned := range map[int]bool{1: true, 4: true, 5: false, 50: false} {
		w := Work{Epoch: 1, Instance: "i", Begun: 9, Units: []Unit{{Events: set("10"), Attempts: 1}}}
		away := false
		for epoch := int64(2); epoch < 40 && !away; epoch++ {
			u := w.Plan([]int64{10})[0]
			u.Calling = true
			w.Put(u)
			next, due := w.Begin(p, epoch, "i", 9)
			for range ends {
				next.Settle(p.After(next.Plan([]int64{10})[0], failed, nil, 0.5))
			}
			w, away = next, len(due) > 0
		}
		testkit.Equal(t, away, condemned, "with %d calls that ended in between it is put away", ends)
	}
}

// F8: nothing is allocated for each event of a batch that is all new and all done.
func TestTheHappyPathIsCheap(t *testing.T) {
	events := make([]int64, 100)
	for i := range events {
		events[i] = int64(i)
	}
	w, p := Work{Begun: -1}, Policy{Retries: 3}
	allocs := testing.AllocsPerRun(100, func() {
		for _, u := range w.Plan(events) {
			p.After(u, Result{}, nil, 0.5)
		}
		w.Passed(99)
	})
	if allocs > 6 {
		t.Errorf("%v allocations for a batch", allocs)
	}
}
