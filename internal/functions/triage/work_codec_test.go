package triage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWorkOnTheWire(t *testing.T) {
	w := Work{Epoch: 7, Instance: "a", Begun: 9, Stalls: 1, Away: set("11,13-15"), Producer: 55, Number: 4}
	w.Put(Unit{Events: set("10,12"), Attempts: 2, Used: 1, Deaths: 3, Counted: 2, Calling: true, Halved: true, Reason: "<no>"})
	w.Intend(Unit{Events: set("16"), Attempts: 4, Reason: "bad"}, "2", 1)
	const text = `{"epoch":7,"instance":"a","begun":9,"stalls":1,` +
		`"units":[{"events":"10,12","attempts":2,"used":1,"deaths":3,"counted":2,"calling":true,"halved":true,"reason":"<no>"}],` +
		`"away":"11,13-15","intent":{"sequence":16,"attempts":4,"partition":"2","producer":55,"number":4,"reason":"bad"},"producer":55,"number":4}`
	testkit.Equal(t, string(testkit.Value(EncodeWork(w))(t)), text)
	if got, err := DecodeWork([]byte(text)); err != nil || !cmp.Equal(got, w) {
		t.Errorf("%v\n%s", err, cmp.Diff(w, got))
	}
}

func TestWorkOfStrangers(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"nothing", ``},
		{"no object", `[]`},
		{"cut short", `{"epoch":7`},
		{"something behind it", `{} {}`},
		{"a negative epoch", `{"epoch":-1}`},
		{"a negative count", `{"stalls":-1}`},
		{"a count that would overflow", `{"stalls":9223372036854775807}`},
		{"a beginning before all", `{"begun":-2}`},
		{"a negative producer", `{"producer":-1}`},
		{"a negative number", `{"number":-1}`},
		{"a number too large", `{"number":2147483648}`},
		{"a negative event", `{"away":"-5"}`},
		{"ranges that overlap", `{"away":"1-5,3"}`},
		{"a set as numbers", `{"away":[1,2]}`},
		{"a unit without events", `{"units":[{"attempts":1}]}`},
		{"a unit with none", `{"units":[{"events":""}]}`},
		{"a unit that is null", `{"units":[null]}`},
		{"a unit with negative attempts", `{"units":[{"events":"1","attempts":-1}]}`},
		{"a unit with negative tries", `{"units":[{"events":"1","used":-1}]}`},
		{"a unit with negative deaths", `{"units":[{"events":"1","deaths":-1}]}`},
		{"a unit with negative counted", `{"units":[{"events":"1","counted":-1}]}`},
		{"a unit with negative ended", `{"units":[{"events":"1","ended":-1}]}`},
		{"units out of order", `{"units":[{"events":"5"},{"events":"1"}]}`},
		{"units that overlap", `{"units":[{"events":"1-3"},{"events":"2"}]}`},
		{"units that overlap far apart", `{"units":[{"events":"1,9"},{"events":"2"},{"events":"5-9"}]}`},
		{"an intent of no event", `{"intent":{"sequence":-1}}`},
		{"an intent with a negative number", `{"intent":{"sequence":1,"number":-1}}`},
		{"an intent with negative attempts", `{"intent":{"sequence":1,"attempts":-1}}`},
		{"an intent that is away already", `{"away":"1-5","intent":{"sequence":3}}`},
		{"two intents of one event", `{"waiting":[{"sequence":3},{"sequence":3}]}`},
		{"an intent that also waits", `{"waiting":[{"sequence":3}],"intent":{"sequence":3}}`},
		{"too much of it", `{"instance":"` + strings.Repeat("x", maxWorkBytes) + `"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if w, err := DecodeWork([]byte(test.text)); err == nil || !cmp.Equal(w, Work{}) {
				t.Errorf("read as %v, %v", w, err)
			}
		})
	}
}

// A later version may record more than we know, and gets it back.
func TestUnknownFieldsSurvive(t *testing.T) {
	w, err := DecodeWork([]byte(`{"epoch":3, "mood":{"good":true, "<why>":1}, "begun":-1, "away":"4", "EPOCH":3}`))
	if err != nil || w.Epoch != 3 {
		t.Fatalf("%v, %v", w, err)
	}
	next, _ := w.Begin(Policy{}, 4, "b", 2)
	next.Put(Unit{Events: set("3"), Attempts: 1})
	want := `{"epoch":4,"instance":"b","begun":2,"units":[{"events":"3","attempts":1}],"away":"4","mood":{"good":true,"<why>":1}}`
	testkit.Equal(t, string(testkit.Value(EncodeWork(next))(t)), want)
	next.Later = map[string]json.RawMessage{"more": json.RawMessage(`"` + strings.Repeat("x", maxWorkBytes-200) + `"`)}
	if b, err := EncodeWork(next); err != nil || len(b) > maxWorkBytes {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	next.Away = nil
	next.Put(Unit{Events: ranges.SetOf(scattered(50)...), Attempts: 1})
	if b, err := EncodeWork(next); !errors.Is(err, errNoRoom) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestWhatMakesNoSenseIsNotStored(t *testing.T) {
	for name, w := range map[string]Work{
		"a set that falls":   {Away: ranges.Between(5, 3)},
		"a set that touches": {Away: append(ranges.Between(1, 2), ranges.Between(3, 4)...)},
		"a unit of nothing":  {Units: []Unit{{Attempts: 1}}},
		"an event in two":    {Units: []Unit{{Events: set("1-3")}, {Events: set("3")}}},
		"a negative event":   {Units: []Unit{{Events: ranges.Between(-1, 0)}}},
	} {
		if b, err := EncodeWork(w); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// manyUnits are n units with reasons, every third with deaths, the last in a call.
func manyUnits(n int) Work {
	w := Work{Epoch: 7, Instance: "a", Begun: 9}
	for i := range n {
		w.Units = append(w.Units, Unit{Events: ranges.SetOf(int64(10 + 2*i)), Attempts: 1 + i%5, Reason: strings.Repeat("\x00", 100)})
		if i%3 == 0 {
			w.Units[i].Deaths = 1
		}
	}
	w.Units[n-1].Calling = true
	return w
}

// F2: what a crash loop is ended by is left out last.
func TestARecordFits(t *testing.T) {
	for _, n := range []int{1, 30, 31, 60, 300, 400, 5000} {
		w := manyUnits(n)
		w.Away, w.Intent = set("0-5"), &Intent{Sequence: 9, Reason: strings.Repeat("\x01", 5000)}
		before := w.show()
		b, err := EncodeWork(w)
		if err != nil || len(b) > maxWorkBytes {
			t.Fatalf("%d units: %d bytes, %v", n, len(b), err)
		}
		if n > 30 && len(b) < maxWorkBytes/3 {
			t.Errorf("%d units: only %d bytes are used", n, len(b))
		}
		got, err := DecodeWork(b)
		if err != nil || !got.Away.Equal(w.Away) || got.Intent == nil || len(got.Intent.Reason) != maxIntentReasonBytes {
			t.Fatalf("%d units: %v, %v", n, err, got)
		}
		keptInOrderOfNeed(t, w, got)
		testkit.Diff(t, before, w.show())
	}
}

func keptInOrderOfNeed(t *testing.T, w, got Work) {
	t.Helper()
	n := len(w.Units)
	if last := got.Units[len(got.Units)-1]; !last.Calling || !last.Events.Equal(w.Units[n-1].Events) {
		t.Errorf("%d units: the call under way was left out", n)
	}
	var plain, dead, allDead int
	for _, u := range w.Units {
		allDead += min(u.Deaths, 1)
	}
	for _, u := range got.Units {
		dead += u.Deaths
		if u.need() == 0 {
			plain++
		}
	}
	if dead < allDead && plain > 0 {
		t.Errorf("%d units: %d of %d with deaths were kept, and %d without", n, dead, allDead, plain)
	}
}

// scattered are n events as lanes have them, none beside another.
func scattered(n int) (events []int64) {
	for i := range n {
		events = append(events, 1e15+2*int64(i))
	}
	return events
}

// F2: a crash loop ends only if the call is recorded, however many events lanes have in a batch and
// however much is away.
func TestACallUnderSuspicionIsRecorded(t *testing.T) {
	for _, away := range []int{0, 400, 700, 900} {
		w := Work{Epoch: 7, Instance: "a", Begun: 9, Stalls: 3, Away: ranges.SetOf(scattered(away)...)}
		events := scattered(away + 5000)[away:]
		for i := range int64(50) { // other lanes
			w.Put(Unit{Events: ranges.SetOf(10*i+1, 10*i+3), Attempts: 1, Reason: "no"})
		}
		var all ranges.Set
		for _, u := range w.Plan(events) {
			all = all.Union(u.Events)
			u.Calling = true
			next := w
			next.Put(u)
			b, err := EncodeWork(next)
			for errors.Is(err, ErrTooLarge) && len(next.Away) > 0 { // as functions do
				next.Away = next.Away[:len(next.Away)/2]
				b, err = EncodeWork(next)
			}
			stored, _ := DecodeWork(b)
			if err != nil || !slices.ContainsFunc(stored.Units, func(u Unit) bool { return u.Calling }) {
				t.Fatalf("with %d away the call for %d events is not recorded: %v", away, u.Events.Len(), err)
			}
			if away == 0 && len(stored.Units) < 20 {
				t.Fatalf("of other units %d are recorded", len(stored.Units))
			}
		}
		if !all.Equal(ranges.SetOf(events...)) {
			t.Fatalf("%d of %d events are planned", all.Len(), len(events))
		}
	}
}

// F2: a unit that is too large is left out, and not what comes behind it.
func TestAUnitThatIsTooLargeIsLeftOutAlone(t *testing.T) {
	w := Work{Epoch: 7, Instance: "a", Begun: 9}
	w.Put(Unit{Events: ranges.SetOf(scattered(2000)...), Attempts: 1, Deaths: 1, Calling: true})
	w.Put(Unit{Events: set("7"), Deaths: 2, Counted: 1})
	b := testkit.Value(EncodeWork(w))(t)
	got := testkit.Value(DecodeWork(b))(t)
	testkit.Diff(t, []string{"7 a0/0 d2/1"}, got.show())
}

func TestAShortRecordKeepsItsReasons(t *testing.T) {
	b, err := EncodeWork(manyUnits(3))
	if got, _ := DecodeWork(b); err != nil || !cmp.Equal(got, manyUnits(3)) {
		t.Error(err, got)
	}
}

func TestTooMuchAway(t *testing.T) {
	var away []int64
	for i := range int64(4000) {
		away = append(away, 1_000_000+2*i)
	}
	if b, err := EncodeWork(Work{Away: ranges.SetOf(away...)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// F4: once the intent could be stored, so can be that it was done.
func TestWhatWasIntendedCanBeSettled(t *testing.T) {
	w := Work{Epoch: 1, Instance: "a", Producer: 5}
	for sequence := int64(1e15); ; sequence += 2 {
		w.Intend(Unit{Events: ranges.SetOf(sequence)}, "", 1)
		if _, err := EncodeWork(w); err != nil {
			if !errors.Is(err, ErrTooLarge) || w.Away.Len() < 500 {
				t.Errorf("with %d away: %v", w.Away.Len(), err)
			}
			return
		}
		w.Sent(sequence)
		testkit.Must(t, testkit.Err(EncodeWork(w)), "with %d away", w.Away.Len())
	}
}

// drawWork draws any record that makes sense.
func drawWork(t *rapid.T) Work {
	count := rapid.IntRange(0, 5)
	w := Work{
		Epoch: rapid.Int64Range(0, 1<<62).Draw(t, "epoch"), Instance: rapid.StringN(0, 20, 60).Draw(t, "instance"),
		Clean: rapid.Bool().Draw(t, "clean"),
		Begun: rapid.Int64Range(-1, 5).Draw(t, "begun"), Stalls: count.Draw(t, "stalls"),
		Producer: rapid.Int64Range(0, 1<<62).Draw(t, "producer"), Number: rapid.Int32Range(0, 1<<30).Draw(t, "number"),
	}
	for range count.Draw(t, "units") {
		w.Put(Unit{
			Events: drawSet(t, "events"), Attempts: count.Draw(t, "attempts"), Used: count.Draw(t, "used"),
			Deaths: count.Draw(t, "deaths"), Counted: count.Draw(t, "counted"), Ended: count.Draw(t, "ended"),
			Calling: rapid.Bool().Draw(t, "calling"), Halved: rapid.Bool().Draw(t, "halved"), Reason: rapid.StringN(0, 40, 120).Draw(t, "reason"),
		})
	}
	w.Away = drawSet(t, "away")
	for range rapid.IntRange(0, 3).Draw(t, "intents") {
		if n := rapid.Int64Range(0, 30).Draw(t, "intent"); !w.Away.Has(n) {
			w.Intend(Unit{Events: ranges.SetOf(n), Attempts: count.Draw(t, "attempts"), Reason: "why"}, "0", 9)
		}
	}
	return w
}

func drawSet(t *rapid.T, name string) ranges.Set {
	return ranges.SetOf(rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 20).Draw(t, name)...)
}

func TestWhatIsStoredIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWork(t)
		b := testkit.Value(EncodeWork(w))(t)
		if got, err := DecodeWork(b); err != nil || !cmp.Equal(got, w) {
			t.Errorf("%v\n%s", err, cmp.Diff(w, got))
		}
	})
}

func FuzzDecodeWork(f *testing.F) {
	b, _ := EncodeWork(manyUnits(4))
	f.Add(b)
	f.Add([]byte(`{"epoch":7,"begun":9,"units":[{"events":"10,12","calling":true}],"away":"11","intent":{"sequence":16}}`))
	f.Add([]byte(`{"epoch":7,"EPOCH":8,"away":"11","more":[1, {"\u003c":null}],"":0}`))
	f.Add([]byte(`{"units":[{"events":"0-9223372036854775807","calling":true,"deaths":9,"counted":9}],"begun":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := DecodeWork(b)
		if err != nil {
			return
		}
		again, err := EncodeWork(w)
		if err != nil {
			if !errors.Is(err, ErrTooLarge) && !errors.Is(err, errNoRoom) {
				t.Fatalf("what was read cannot be stored: %v", err)
			}
			return
		}
		usable(t, w)
		second, err := DecodeWork(again)
		if err != nil || len(again) > maxWorkBytes {
			t.Fatalf("%d bytes, %v", len(again), err)
		}
		if third, err := EncodeWork(second); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%v\n%s\n%s", err, again, third)
		}
	})
}

// usable goes through what an owner does with a record, whoever wrote it.
func usable(t *testing.T, w Work) {
	next, due := w.Begin(Policy{}, w.Epoch+1, "x", w.Begun)
	for _, part := range due {
		if part.Events.Len() != 1 {
			t.Fatal(fmt.Sprint("due are several: ", part.show()))
		}
	}
	for _, u := range next.Plan([]int64{0, 1, 5, 6, 1 << 62}) {
		next.Settle(Policy{}.After(u, Result{Verdict: Failed}, map[int64]Result{5: {Verdict: Poison}}, 0.5))
	}
	next.Passed(5)
	if _, err := EncodeWork(next); err != nil && !errors.Is(err, ErrTooLarge) && !errors.Is(err, errNoRoom) {
		t.Fatal(err)
	}
}
