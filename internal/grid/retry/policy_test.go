package retry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G6, G13: what a policy may say.
func TestCheck(t *testing.T) {
	long := make([]time.Duration, 101)
	for i := range long {
		long[i] = time.Second
	}
	for _, tt := range []struct {
		what   string
		policy Policy
		wrong  string // part of the error, empty for none
	}{
		{"the zero value", Policy{}, ""},
		{"all that is allowed", Policy{
			MaxAttempts: 30, TimeToLive: 24 * time.Hour, Schedule: long[:100],
			Floors: map[int]time.Duration{0: 0, 100: time.Second, 599: 24 * time.Hour}, NoRetry: []int{100, 205, 599}, MaxRetryAfter: 24 * time.Hour,
		}, ""},
		{"the least", Policy{MaxAttempts: 1, TimeToLive: time.Second, MaxRetryAfter: -1}, ""},
		{"attempts below zero", Policy{MaxAttempts: -1}, "give 1 to 30"},
		{"too many attempts", Policy{MaxAttempts: 31}, "give 1 to 30"},
		{"too short a life", Policy{TimeToLive: time.Millisecond}, "give 1s to 24h"},
		{"a life below zero", Policy{TimeToLive: -time.Second}, "give 1s to 24h"},
		{"too long a life", Policy{TimeToLive: 24*time.Hour + 1}, "give 1s to 24h"},
		{"a schedule too long", Policy{Schedule: long}, "give at most 100"},
		{"a wait of zero", Policy{Schedule: []time.Duration{1, 0}}, "wait 2 of the schedule"},
		{"a wait too long", Policy{Schedule: []time.Duration{25 * time.Hour}}, "at most 24h"},
		{"a floor of no status", Policy{Floors: map[int]time.Duration{99: 1}}, "status 99"},
		{"a floor below zero", Policy{Floors: map[int]time.Duration{503: -1}}, "status 503"},
		{"a floor too high", Policy{Floors: map[int]time.Duration{503: 25 * time.Hour}}, "status 503"},
		{"no status not to be retried", Policy{NoRetry: []int{0}}, "status 0"},
		{"success not to be retried", Policy{NoRetry: []int{200}}, "means success"},
		{"a cap too high", Policy{MaxRetryAfter: 25 * time.Hour}, "Retry-After"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			err := tt.policy.Check()
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("got %v, want %q", err, tt.wrong)
			}
		})
	}
}

func TestCheckWithinLimitsOfOnesOwn(t *testing.T) {
	more := Limits{MaxAttempts: 100, TimeToLive: 7 * 24 * time.Hour}
	p := Policy{MaxAttempts: 100, TimeToLive: 7 * 24 * time.Hour}
	testkit.Check(t, p.CheckWithin(more))
	if err := p.Check(); err == nil {
		t.Error("allowed by default")
	}
	p.MaxAttempts++
	if err := p.CheckWithin(more); err == nil {
		t.Error("more than the limit")
	}
	less := Limits{MaxAttempts: 5, TimeToLive: time.Hour}
	for _, p := range []Policy{{}, {MaxAttempts: 5}, {TimeToLive: time.Hour}} {
		if err := p.CheckWithin(less); err == nil || strings.Contains(err.Error(), "or 0") {
			t.Errorf("%+v: a default beyond the limit: %v", p, err)
		}
	}
	testkit.Check(t, (Policy{MaxAttempts: 5, TimeToLive: time.Hour}).CheckWithin(less))
}

func TestParseSchedule(t *testing.T) {
	good := map[string][]time.Duration{
		"":                nil,
		" ":               nil,
		"1s":              {time.Second},
		"1s,2s,5s":        {time.Second, 2 * time.Second, 5 * time.Second},
		" 100ms , 1h30m ": {100 * time.Millisecond, 90 * time.Minute},
	}
	for text, want := range good {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseSchedule(text); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		})
	}
	for _, text := range []string{"1", "1s,", ",1s", "1s;2s", "0s", "-1s", "25h", "soon"} {
		if got, err := ParseSchedule(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestParseFloor(t *testing.T) {
	good := []struct {
		text   string
		status int
		wait   time.Duration
	}{
		{"503=5s", 503, 5 * time.Second}, {" 408 = 0s ", 408, 0}, {"other=1s", 0, time.Second},
		{"Other=1s", 0, time.Second}, {"*=1m", 0, time.Minute},
	}
	for _, tt := range good {
		t.Run(tt.text, func(t *testing.T) {
			if status, wait, err := ParseFloor(tt.text); err != nil || status != tt.status || wait != tt.wait {
				t.Errorf("%q: %d, %v, %v", tt.text, status, wait, err)
			}
		})
	}
	for _, text := range []string{"", "503", "=5s", "503=", "503=x", "0=1s", "99=1s", "600=1s", "503=-1s", "503=25h"} {
		if status, wait, err := ParseFloor(text); err == nil {
			t.Errorf("%q: %d, %v", text, status, wait)
		}
	}
}

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

// The steps are names of logs on disk: whoever changes them must move what waits there.
func TestStepsKeepTheirNumbers(t *testing.T) {
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
