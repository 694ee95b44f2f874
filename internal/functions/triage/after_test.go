package triage

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
)

// set reads a set, for tables.
func set(text string) ranges.Set {
	var s ranges.Set
	if err := s.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return s
}

// show is a part in one line.
func (p Part) show() string {
	s := [...]string{"finish", "call", "away"}[p.Do] + " " + p.Unit.show()
	if p.Wait > 0 {
		s += " in " + p.Wait.String()
	}
	if p.Skipped {
		s += " skipped"
	}
	if p.Down {
		s += " counts"
	}
	return s
}

// show gives events, then Attempts and Used, then Deaths and Counted where there are any.
func (u Unit) show() string {
	s := fmt.Sprintf("%v a%d/%d", u.Events, u.Attempts, u.Used)
	if u.Deaths+u.Counted > 0 {
		s += fmt.Sprintf(" d%d/%d", u.Deaths, u.Counted)
	}
	if u.Ended > 0 {
		s += fmt.Sprintf(" e%d", u.Ended)
	}
	if u.Down > 0 {
		s += fmt.Sprintf(" down%d", u.Down)
	}
	if u.Accused {
		s += " accused"
	}
	if u.Halved {
		s += " halved"
	}
	if u.Calling {
		s += " calling"
	}
	if u.Reason != "" {
		s += " " + fmt.Sprintf("%q", u.Reason)
	}
	return s
}

func shows[T interface{ show() string }](list []T) []string {
	var lines []string
	for _, x := range list {
		lines = append(lines, x.show())
	}
	return lines
}

var (
	done      = Result{}
	failed    = Result{Verdict: Failed, Reason: "no"}
	poisoned  = Result{Verdict: Poison, Reason: "bad"}
	skipped   = Result{Verdict: Skip, Reason: "old"}
	untouched = Result{Verdict: Untouched}
	later     = Result{Verdict: Later, Wait: 9 * time.Second, Reason: "busy"}
)

// F3, F4
func TestAfterAWholeCall(t *testing.T) {
	three := Policy{Retries: 3, Delay: time.Second}
	for _, test := range []struct {
		name   string
		policy Policy
		unit   Unit
		result Result
		want   []string
	}{
		{"done is done", three, Unit{Events: set("1-4,8")}, done, []string{`finish 1-4,8 a0/0`}},
		{"done after failures is done", three, Unit{Events: set("1"), Attempts: 3, Used: 3, Calling: true}, done, []string{`finish 1 a3/3`}},
		{"what is skipped is done and told", three, Unit{Events: set("1-2")}, skipped, []string{`finish 1-2 a0/0 "old" skipped`}},
		{"the first failure waits", three, Unit{Events: set("1-4")}, failed, []string{`call 1-4 a1/1 "no" in 1s`}},
		{"so does the last that the policy allows", three, Unit{Events: set("1-4"), Attempts: 7, Used: 2, Calling: true}, failed,
			[]string{`call 1-4 a8/3 "no" in 1s`}},
		{"then it is divided", three, Unit{Events: set("1-4"), Attempts: 3, Used: 3}, failed,
			[]string{`call 1-2 a4/0 halved "no"`, `call 3-4 a4/0 halved "no"`}},
		{"by count, not by number", three, Unit{Events: set("1,50-52"), Attempts: 3, Used: 3}, failed,
			[]string{`call 1,50 a4/0 halved "no"`, `call 51-52 a4/0 halved "no"`}},
		{"the left half is the larger", three, Unit{Events: set("1-3"), Used: 3}, failed,
			[]string{`call 1-2 a1/0 halved "no"`, `call 3 a1/0 halved "no"`}},
		{"one event is put away", three, Unit{Events: set("5"), Attempts: 3, Used: 3}, failed, []string{`away 5 a4/4 "no"`}},
		{"without retries the first failure divides", Policy{}, Unit{Events: set("1-2")}, failed,
			[]string{`call 1 a1/0 halved "no"`, `call 2 a1/0 halved "no"`}},
		{"and puts away", Policy{}, Unit{Events: set("1")}, failed, []string{`away 1 a1/1 "no"`}},
		{"for ever is for ever", Policy{Retries: -1, Delay: time.Second}, Unit{Events: set("1-2"), Attempts: 1000, Used: 1000}, failed,
			[]string{`call 1-2 a1001/1001 "no" in 1s`}},
		{"for ever also for what another policy divided",
			Policy{Retries: -1, Delay: time.Second}, Unit{Events: set("1"), Attempts: 4, Halved: true}, failed,
			[]string{`call 1 a5/1 halved "no" in 1s`}},
		{"a half that fails is divided", three, Unit{Events: set("1-4"), Attempts: 4, Halved: true}, failed,
			[]string{`call 1-2 a5/0 halved "no"`, `call 3-4 a5/0 halved "no"`}},
		{"down to one event, which is called once more, and soon", three, Unit{Events: set("1"), Attempts: 4, Halved: true}, failed,
			[]string{`call 1 a5/1 halved "no" in 100ms`}},
		{"and then put away", three, Unit{Events: set("1"), Attempts: 5, Used: 1, Halved: true}, failed, []string{`away 1 a6/2 halved "no"`}},
		{"at once where there are no retries", Policy{}, Unit{Events: set("1"), Attempts: 1, Halved: true}, failed, []string{`away 1 a2/1 halved "no"`}},
		{"later is by policy, after its own wait", three, Unit{Events: set("1-2"), Attempts: 1, Used: 1}, later,
			[]string{`call 1-2 a2/2 "busy" in 9s`}},
		{"and uses it up", three, Unit{Events: set("1-2"), Attempts: 3, Used: 3}, later,
			[]string{`call 1 a4/0 halved "busy"`, `call 2 a4/0 halved "busy"`}},
		{"a negative wait is none", three, Unit{Events: set("1")}, Result{Verdict: Later, Wait: -1}, []string{`call 1 a1/1`}},
		{"a half may ask for later", three, Unit{Events: set("1"), Attempts: 4, Halved: true}, later, []string{`call 1 a5/1 halved "busy" in 9s`}},
		{"within the policy", three, Unit{Events: set("1"), Attempts: 7, Used: 3, Halved: true}, later, []string{`away 1 a8/4 halved "busy"`}},
		{"and fails as before", three, Unit{Events: set("1"), Attempts: 5, Used: 1, Halved: true}, failed, []string{`away 1 a6/2 halved "no"`}},
		{"poison among several is looked for at once, at no cost of tries", three, Unit{Events: set("1-4"), Attempts: 1, Used: 1}, poisoned,
			[]string{`call 1-2 a2/1 "bad"`, `call 3-4 a2/1 "bad"`}},
		{"in a half too", three, Unit{Events: set("1-2"), Attempts: 4, Halved: true}, poisoned,
			[]string{`call 1 a5/0 halved "bad"`, `call 2 a5/0 halved "bad"`}},
		{"alone it is put away", three, Unit{Events: set("1")}, poisoned, []string{`away 1 a1/0 "bad"`}},
		{"for ever too", Policy{Retries: -1}, Unit{Events: set("1")}, poisoned, []string{`away 1 a1/0 "bad"`}},
		{"what was not touched keeps its numbers, and waits",
			three, Unit{Events: set("1-2"), Attempts: 2, Used: 1, Deaths: 1, Calling: true}, untouched,
			[]string{`call 1-2 a2/1 d1/0 in 1s`}},
		{"for longer where the policy says so", Policy{Delay: time.Hour}, Unit{Events: set("1-2")}, untouched, []string{`call 1-2 a0/0 in 1h0m0s`}},
		{"a verdict of nobody's is a failure", three, Unit{Events: set("1")}, Result{Verdict: 77, Reason: "?"}, []string{`call 1 a1/1 "?" in 1s`}},
		{"deaths of the whole do not count against a half", three, Unit{Events: set("1-2"), Used: 3, Deaths: 2, Counted: 2}, failed,
			[]string{`call 1 a1/0 d2/0 e1 halved "no"`, `call 2 a1/0 d2/0 e1 halved "no"`}},
		{"counts do not overflow", Policy{Retries: -1}, Unit{Events: set("1"), Attempts: maxCount, Used: maxCount}, failed,
			[]string{fmt.Sprintf(`call 1 a%d/%d "no"`, maxCount, maxCount)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, shows(test.policy.After(test.unit, test.result, nil, 0.5)))
		})
	}
}

// F4
func TestAfterResultsOfTheirOwn(t *testing.T) {
	type each = map[int64]Result
	two := Policy{Retries: 2, Delay: time.Second}
	for _, test := range []struct {
		name  string
		unit  Unit
		whole Result
		each  each
		want  []string
	}{
		{"one by one: those before are done, those behind wait untouched", Unit{Events: set("1-5"), Attempts: 1, Used: 1, Reason: "then"}, done,
			each{3: failed, 4: untouched, 5: untouched},
			[]string{`finish 1-2 a1/1 "then"`, `call 3 a2/2 "no" in 1s`, `call 4-5 a1/1 "then"`}},
		{"the failed ones stay together", Unit{Events: set("1-5")}, done, each{2: failed, 4: failed},
			[]string{`finish 1,3,5 a0/0`, `call 2,4 a1/1 "no" in 1s`}},
		{"used up each is put away",
			Unit{Events: set("1-5"), Attempts: 2, Used: 2}, done, each{2: failed, 4: {Verdict: Failed, Reason: "nor this"}},
			[]string{`finish 1,3,5 a2/2`, `away 2 a3/3 "no"`, `away 4 a3/3 "nor this"`}},
		{"in a half it is known which, and tried again alone", Unit{Events: set("1-3"), Attempts: 3, Halved: true}, done, each{2: failed, 3: untouched},
			[]string{`finish 1 a3/0 halved`, `call 2 a4/1 halved "no" in 100ms`, `call 3 a3/0 halved`}},
		{"poison is put away, others go on", Unit{Events: set("1-4")}, done, each{1: poisoned, 3: poisoned, 4: failed},
			[]string{`away 1 a1/1 "bad"`, `finish 2 a0/0`, `away 3 a1/1 "bad"`, `call 4 a1/1 "no" in 1s`}},
		{"later and failed wait together for the longer", Unit{Events: set("1-3")}, done, each{1: failed, 3: later},
			[]string{`call 1,3 a1/1 "no" in 9s`, `finish 2 a0/0`}},
		{"in a half too", Unit{Events: set("1-3"), Halved: true}, done, each{1: failed, 3: later},
			[]string{`call 1,3 a1/1 halved "no" in 9s`, `finish 2 a0/0 halved`}},
		{"later is used up as well", Unit{Events: set("1-2"), Used: 2}, done, each{2: later}, []string{`finish 1 a0/2`, `away 2 a1/3 "busy"`}},
		{"skipped ones are told apart", Unit{Events: set("1-3")}, done, each{2: skipped},
			[]string{`finish 1,3 a0/0`, `finish 2 a0/0 "old" skipped`}},
		{"the rest may have failed together", Unit{Events: set("1-6"), Attempts: 2, Used: 2}, failed, each{2: done, 5: untouched},
			[]string{`call 1,3 a3/0 halved "no"`, `finish 2 a2/2`, `call 4,6 a3/0 halved "no"`, `call 5 a2/2`}},
		{"or is untouched, with those that say so", Unit{Events: set("1-4")}, untouched, each{1: done, 3: untouched},
			[]string{`finish 1 a0/0`, `call 2-4 a0/0`}},
		{"where none was touched all wait", Unit{Events: set("1-2")}, done, each{1: untouched, 2: untouched}, []string{`call 1-2 a0/0 in 1s`}},
		{"results of others' events say nothing", Unit{Events: set("1,3")}, done, each{2: failed, 9: poisoned}, []string{`finish 1,3 a0/0`}},
		{"a result of one alone is as that of the whole", Unit{Events: set("7"), Attempts: 2, Used: 2}, failed, each{7: failed},
			[]string{`away 7 a3/3 "no"`}},
		{"a verdict of nobody's is a failure", Unit{Events: set("1-2")}, done, each{1: {Verdict: -3, Reason: "?"}},
			[]string{`call 1 a1/1 "?" in 1s`, `finish 2 a0/0`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Diff(t, test.want, shows(two.After(test.unit, test.whole, test.each, 0.5)))
		})
	}
}

// F4: whatever a program answers, each event is in exactly one part, and parts come from left to
// right.
func TestPartsAreThePartition(t *testing.T) {
	results := rapid.Custom(func(t *rapid.T) Result {
		return Result{
			Verdict: Verdict(rapid.IntRange(-1, int(Verdicts)).Draw(t, "verdict")),
			Wait:    time.Duration(rapid.IntRange(-1, 5).Draw(t, "wait")), Reason: "r",
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		events := drawSet(t, "events")
		if len(events) == 0 {
			t.Skip("nothing to call")
		}
		u := Unit{Events: events, Attempts: rapid.IntRange(0, 4).Draw(t, "attempts"), Used: rapid.IntRange(0, 4).Draw(t, "used"),
			Deaths: rapid.IntRange(0, 4).Draw(t, "deaths"), Counted: rapid.IntRange(0, 4).Draw(t, "counted"),
			Halved: rapid.Bool().Draw(t, "halved"), Calling: true}
		p := Policy{Retries: rapid.IntRange(-1, 4).Draw(t, "retries")}
		each := rapid.MapOfN(rapid.Int64Range(0, 31), results, 0, 12).Draw(t, "each")
		parted(t, u, p.After(u, results.Draw(t, "whole"), each, 0.5))
		var halves []Part
		for _, half := range p.died(u, true) {
			halves = append(halves, Part{Unit: half, Do: Call})
		}
		parted(t, u, halves)
	})
}

func parted(t *rapid.T, u Unit, parts []Part) {
	t.Helper()
	var all ranges.Set
	for i, part := range parts {
		if len(part.Events) == 0 || len(all.Intersect(part.Events)) > 0 {
			t.Errorf("part %d of %v is empty or shared", i, shows(parts))
		}
		if i > 0 && parts[i-1].Events.First() > part.Events.First() {
			t.Errorf("part %d of %v is out of order", i, shows(parts))
		}
		if part.Calling || part.Wait < 0 || part.Do == PutAway && part.Events.Len() != 1 {
			t.Errorf("part %d of %v is impossible", i, shows(parts))
		}
		all = all.Union(part.Events)
	}
	if !all.Equal(u.Events) {
		t.Errorf("parts %v of %v", shows(parts), u.Events)
	}
}

// F3: one call decides whether a part is divided, and a guilty event is called once more, so the
// calls for a batch of n with g guilty are bounded.
func TestBisectingIsQuick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 200).Draw(t, "events")
		guilty := ranges.SetOf(rapid.SliceOfN(rapid.Int64Range(0, n-1), 0, 8).Draw(t, "guilty")...)
		p := Policy{Retries: rapid.IntRange(0, 4).Draw(t, "retries")}
		queue, away, calls := []Unit{{Events: ranges.Between(0, n-1)}}, ranges.Set(nil), 0
		for len(queue) > 0 {
			u := queue[0]
			result := done
			if len(u.Events.Intersect(guilty)) > 0 {
				result = failed
			}
			calls++
			var again []Unit
			for _, part := range p.After(u, result, nil, 0.5) {
				switch part.Do {
				case Call:
					again = append(again, part.Unit)
				case PutAway:
					away = away.Union(part.Events)
				}
			}
			queue = append(again, queue[1:]...)
		}
		if !away.Equal(guilty) {
			t.Errorf("%v are guilty, %v are away", guilty, away)
		}
		levels := 0
		for size := n; size > 1; size -= size / 2 {
			levels++
		}
		if most := p.Retries + 1 + int(guilty.Len())*(2*levels+1); calls > most {
			t.Errorf("%d calls for %d guilty of %d, at most %d are needed", calls, guilty.Len(), n, most)
		}
	})
}

func TestReasonsAreShortAndValid(t *testing.T) {
	for _, reason := range []string{
		strings.Repeat("ä", maxReasonBytes), strings.Repeat("x", 99) + "\xff\xfe",
		strings.Repeat("a\xff", 9999), "x" + strings.Repeat("😀", 999),
	} {
		got := Policy{Retries: 1}.After(Unit{Events: set("1")}, Result{Verdict: Failed, Reason: reason}, nil, 0.5)[0].Reason
		if len(got) > maxReasonBytes || len(got) < 90 || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
	}
}

// F5: an event that stayed undone when the circuit opened has a fresh round of retries.
func TestAnew(t *testing.T) {
	u := Unit{Events: set("1"), Attempts: 5, Used: 4, Deaths: 4, Counted: 3, Halved: true, Calling: true, Reason: "no"}.Anew()
	testkit.Equal(t, u.show(), `1 a5/0 d4/3 "no"`)
	testkit.Equal(t, u.Tries(), 9, "tries")
	if got := shows(Policy{Retries: 1}.After(u, failed, nil, 0.5)); got[0] != `call 1 a6/1 d4/3 e1 "no"` {
		t.Error(got)
	}
}
