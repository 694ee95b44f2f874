package retry

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G5: no wait of the defaults is rounded.
func TestLadder(t *testing.T) {
	got := Ladder()
	if len(got) > 40 || got[0] != 100*time.Millisecond || got[len(got)-1] != 24*time.Hour {
		t.Errorf("%d waits, %v to %v", len(got), got[0], got[len(got)-1])
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("it does not rise: %v", got)
	}
	exact := slices.Concat(defaultSchedule, []time.Duration{
		2 * time.Minute, 30 * time.Second, 10 * time.Second, resourceFloor, DefaultMaxRetryAfter,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second,
	})
	for _, wait := range exact {
		if got[Step(wait)] != wait {
			t.Errorf("%v is rounded to %v", wait, got[Step(wait)])
		}
	}
	got[0] = 0
	if Ladder()[0] == 0 {
		t.Error("a caller can change it")
	}
}

// The places are names of logs on disk: whoever moves them must move what waits there.
func TestPositionsAreKept(t *testing.T) {
	for wait, want := range map[time.Duration]int{
		100 * time.Millisecond: 0, time.Second: 3, 10 * time.Second: 7, time.Minute: 12, 10 * time.Minute: 18,
		time.Hour: 23, 12 * time.Hour: 30, 24 * time.Hour: 32,
	} {
		if got := Step(wait); got != want {
			t.Errorf("%v is at %d, was at %d", wait, got, want)
		}
	}
}

func TestStep(t *testing.T) {
	steps := Ladder()
	for wait, want := range map[time.Duration]time.Duration{
		-time.Hour: 100 * time.Millisecond, 0: 100 * time.Millisecond, 101 * time.Millisecond: 200 * time.Millisecond,
		10*time.Second + 1: 15 * time.Second, 24*time.Hour + 1: 24 * time.Hour, 1 << 62: 24 * time.Hour,
	} {
		testkit.Equal(t, steps[Step(wait)], want, "%v waits", wait)
	}
}

func TestStepNeverRoundsDown(t *testing.T) {
	steps := Ladder()
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "wait"))
		position := Step(wait)
		if steps[position] < wait {
			t.Fatalf("%v waits only %v", wait, steps[position])
		}
		if position > 0 && steps[position-1] >= wait {
			t.Fatalf("%v waits %v, though %v would do", wait, steps[position], steps[position-1])
		}
	})
}
