package triage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// F3
func TestWait(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name   string
		policy Policy
		n      int
		random float64
		want   time.Duration
	}{
		{"a fixed delay is the same each time", Policy{Delay: 3 * s}, 7, 0.9, 3 * s},
		{"no delay is none", Policy{Exponential: true}, 3, 0.5, 0},
		{"a negative delay is none", Policy{Delay: -s}, 1, 0.5, 0},
		{"the first wait is the delay", Policy{Delay: s, Exponential: true}, 1, 0.5, s},
		{"it doubles", Policy{Delay: s, Exponential: true}, 4, 0.5, 8 * s},
		{"up to a minute", Policy{Delay: s, Exponential: true}, 9, 0.5, time.Minute},
		{"or what is set", Policy{Delay: s, Max: 5 * s, Exponential: true}, 9, 0.5, 5 * s},
		{"a delay longer than a minute is the limit", Policy{Delay: 2 * time.Minute, Exponential: true}, 3, 0.5, 2 * time.Minute},
		{"what is set is the limit even of the first", Policy{Delay: 5 * s, Max: s, Exponential: true}, 1, 0.5, s},
		{"jitter takes up to a fifth", Policy{Delay: s, Exponential: true}, 1, 0, 800 * ms},
		{"or adds it", Policy{Delay: s, Exponential: true}, 1, 0.999999999, 1199999999},
		{"but never beyond the limit", Policy{Delay: s, Max: s, Exponential: true}, 1, 0.9, s},
		{"what is counted wrongly is the first", Policy{Delay: s, Exponential: true}, -1, 0.5, s},
		{"any number will do", Policy{Delay: 1, Max: math.MaxInt64, Exponential: true}, math.MaxInt, 0.5, math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, test.policy.Wait(test.n, test.random), test.want, "wait")
		})
	}
}

// F3
func TestWaitsGrowUpToTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Delay:       time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "delay")),
			Max:         time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "max")),
			Exponential: rapid.Bool().Draw(t, "exponential"),
		}
		random := rapid.Float64Range(0, 0.999).Draw(t, "random")
		last := time.Duration(0)
		for n := 1; n < 70; n++ {
			wait := p.Wait(n, random)
			if wait < last || p.Exponential && wait > p.limit() {
				t.Fatalf("wait %d is %v after %v, the limit is %v", n, wait, last, p.limit())
			}
			last = wait
		}
	})
}

func TestDeathLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy Policy
		want   int
	}{
		{"three without retries", Policy{}, 3},
		{"three for ever", Policy{Retries: -1}, 3},
		{"three with two retries", Policy{Retries: 2}, 3},
		{"as many as calls with more", Policy{Retries: 9}, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, test.policy.deaths(), test.want, "deaths")
		})
	}
}
