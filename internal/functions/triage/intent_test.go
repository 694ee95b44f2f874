package triage

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F4: one poison event for each event, each under a number of its own.
func TestPuttingAway(t *testing.T) {
	var w Work
	u := Unit{Events: set("4"), Attempts: 2, Deaths: 1, Reason: "no"}
	w.Put(u)
	got := w.Intend(u, "2", 5)
	if want := (Intent{Sequence: 4, Attempts: 2, Deaths: 1, Partition: "2", Producer: 5, Reason: "no"}); got != want || *w.Intent != want {
		t.Errorf("intent %v, want %v", got, want)
	}
	if !w.Intended(u) || w.Intended(Unit{Events: set("5")}) || w.Intended(Unit{Events: set("4-5")}) {
		t.Error("the intent is another's")
	}
	w.Sent(4)
	testkit.Diff(t, []string{"away 4"}, w.show())
	testkit.Slices(t, []any{w.Number, w.Producer, w.Intended(u)}, []any{int32(1), int64(5), false}, "number, producer, intended")
	if got := w.Intend(Unit{Events: set("9")}, "2", 6); got.Producer != 5 || got.Number != 1 {
		t.Errorf("the next is %v", got)
	}
}

func TestNothingIsSentThatWasNotIntended(t *testing.T) {
	w := Work{Producer: 5, Number: 3}
	w.Sent(4)
	if got := w.Renumber(4, 6); got != (Intent{}) || !cmp.Equal(w, Work{Producer: 5, Number: 3}) {
		t.Errorf("%v, %v", got, w)
	}
}

func TestNumbersGoRound(t *testing.T) {
	w := Work{Producer: 5, Number: math.MaxInt32}
	w.Intend(Unit{Events: set("4")}, "", 6)
	w.Sent(4)
	testkit.Slices(t, []int64{int64(w.Number), w.Producer}, []int64{0, 5}, "number and producer")
}

// F4: the same poison event is written again under the same number, whatever is known now.
func TestIntendingAgain(t *testing.T) {
	var w Work
	first := w.Intend(Unit{Events: set("4"), Attempts: 2, Reason: "no"}, "2", 5)
	next, _ := Work{Epoch: 1, Intent: w.Intent, Producer: 5, Begun: 1}.Begin(Policy{}, 2, "b", 1)
	testkit.Equal(t, next.Intend(next.Plan([]int64{4})[0], "0", 6), first, "%v, then", first)
}

// F4: an event that has to be put away before the one that a dead owner was about to put away:
// under its number nothing else may go, as that may be taken for a repeat; under the next one
// neither, as the hub may miss the one between.
func TestAnIntentWaitsForItsEvent(t *testing.T) {
	w := Work{Producer: 5, Number: 3}
	first := w.Intend(Unit{Events: set("14")}, "2", 6)
	if got := w.Intend(Unit{Events: set("11")}, "2", 6); got.Producer != 6 || got.Number != 0 {
		t.Errorf("before it: %v", got)
	}
	testkit.Diff(t, []string{"intent 11", "waiting 14"}, w.show())
	w.Sent(11)
	if got := w.Intend(Unit{Events: set("12")}, "2", 7); got.Producer != 6 || got.Number != 1 {
		t.Errorf("next: %v", got)
	}
	w.Sent(12)
	if got := w.Intend(Unit{Events: set("14")}, "0", 7); got != first || w.Intent != nil {
		t.Errorf("at last: %v, want %v", got, first)
	}
	w.Sent(14)
	testkit.Diff(t, []string{"away 11-12,14"}, w.show())
	testkit.Slices(t, []int64{w.Producer, int64(w.Number)}, []int64{6, 2}, "producer and number")
}

// F4: the poison hub was made anew, and knows no numbers.
func TestRenumber(t *testing.T) {
	w := Work{Producer: 5, Number: 3}
	w.Intend(Unit{Events: set("14")}, "", 6)
	w.Intend(Unit{Events: set("11")}, "", 6)
	if got := w.Renumber(11, 8); got.Producer != 8 || got.Number != 0 || *w.Intent != got || w.Producer != 8 {
		t.Errorf("%v, %v", got, w)
	}
	if got := w.Renumber(14, 9); got.Producer != 9 || got.Number != 0 || w.Producer != 8 || !cmp.Equal(w.Waiting, []Intent{got}) {
		t.Errorf("%v, %v", got, w)
	}
}

// F4: whose intent cannot wait comes again as an event that has failed, and its poison event is
// written then: perhaps twice, never not at all.
func TestNotManyWait(t *testing.T) {
	var w Work
	for n := range int64(20) {
		u := Unit{Events: ranges.SetOf(n), Attempts: 4, Used: 4, Reason: "no"}
		w.Put(u)
		w.Intend(u, "", n+1)
	}
	if len(w.Waiting) != maxWaiting || w.Waiting[0].Sequence != 11 {
		t.Errorf("%v wait", w.show())
	}
	for n := range int64(20) {
		u := w.Plan([]int64{n})[0]
		if !w.Intended(u) {
			parts := Policy{Retries: 3}.After(u, failed, nil, 0.5)
			if len(parts) != 1 || parts[0].Do != PutAway {
				t.Fatalf("%d, whose intent is forgotten, becomes %v", n, shows(parts))
			}
			u = parts[0].Unit
		}
		w.Intend(u, "", 100+n)
		w.Sent(n)
	}
	testkit.Diff(t, []string{"away 0-19"}, w.show())
}
