package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// ladder is the schedule of a subscription's retries, with how many events stand on each rung.
type ladder struct {
	Rungs []rung
	Wide  float64 // of a rung
	// Ends is when an event has used up its time, Tries how many attempts it has.
	Ends  string
	Tries int
	Label string // it in a sentence
}

// rung is one wait; Try is the attempt that comes after it, and Age how old an event is then. Of a wait
// that an endpoint has asked for both are empty.
type rung struct {
	bar
	Try, Age string
}

// usualSchedule is that of subscriptions that have none of their own.
const usualSchedule = "10s,30s,1m,5m,10m,30m,1h,3h,6h,12h"

const (
	ladderLeft, ladderRight, ladderBase, ladderHigh = 62, 880, 128, 84
	maxRungs                                        = 16
)

// newLadder draws a schedule. nil: it has none, because events wait in order, or are received.
func newLadder(s admin.Subscription) *ladder {
	if s.Stats == nil || s.OrderBy != "" || s.Pull != nil {
		return nil
	}
	waits, tries := waitsOf(s.Retry.Schedule), map[time.Duration]int{}
	ages, age := map[time.Duration]time.Duration{}, time.Duration(0)
	for i, w := range waits {
		if age += w; tries[w] == 0 {
			tries[w], ages[w] = i+2, age
		}
	}
	stand := map[time.Duration]int64{}
	for _, w := range s.Stats.Waiting {
		if d, err := time.ParseDuration(w.Wait); err == nil && w.Events > 0 {
			stand[d] += w.Events
			waits = append(waits, d)
		}
	}
	slices.Sort(waits)
	waits = slices.Compact(waits)
	waits = waits[:min(len(waits), maxRungs)]
	l := &ladder{Tries: s.Retry.Attempts, Ends: s.Retry.TTL}
	if d, err := time.ParseDuration(s.Retry.TTL); err == nil {
		l.Ends = rounded(d)
	}
	l.Rungs, l.Wide = rungsOf(waits, stand)
	for i, w := range waits {
		if n := tries[w]; n > 0 {
			l.Rungs[i].Try, l.Rungs[i].Age = fmt.Sprint("try ", n), "age "+roughly(ages[w])
		}
	}
	l.Label = l.sentence()
	return l
}

func waitsOf(schedule []string) (waits []time.Duration) {
	if len(schedule) == 0 {
		schedule = strings.Split(usualSchedule, ",")
	}
	for _, text := range schedule {
		if d, err := time.ParseDuration(text); err == nil {
			waits = append(waits, d)
		}
	}
	return waits
}

// rungsOf draws the numbers by their logarithm: one event is seen beside a million.
func rungsOf(waits []time.Duration, stand map[time.Duration]int64) (rungs []rung, wide float64) {
	most := 1.
	for _, n := range stand {
		most = max(most, math.Log1p(float64(n)))
	}
	step := (ladderRight - ladderLeft) / float64(max(len(waits), 1))
	wide = round(step * .8)
	for i, w := range waits {
		r := rung{bar: bar{ID: fmt.Sprint("rung", i), X: round(ladderLeft + step*(float64(i)+.5)), Y: ladderBase, Breath: wide, Of: rounded(w)}}
		if n := stand[w]; n > 0 {
			r.Height = round(ladderHigh * math.Log1p(float64(n)) / most)
			r.Y, r.Label = round(ladderBase-r.Height), short(n)
		}
		rungs = append(rungs, r)
	}
	return rungs, wide
}

func (l *ladder) sentence() string {
	var said []string
	for _, r := range l.Rungs {
		if r.Label != "" {
			said = append(said, r.Label+" for "+r.Of)
		}
	}
	if said == nil {
		said = []string{"none"}
	}
	return fmt.Sprintf("Events that wait for another try: %s. The schedule ends after %s or %d tries.", strings.Join(said, ", "), l.Ends, l.Tries)
}

// roughly writes a duration in its largest unit.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return rounded(d)
	case d < time.Hour:
		return rounded(d.Round(time.Minute))
	}
	return rounded(d.Round(time.Hour))
}

// rounded writes a duration without what is zero of it.
func rounded(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.Replace(span(d), ".0 s", " s", 1), " 0 s"), " 0 min")
}
