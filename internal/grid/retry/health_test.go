package retry

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// failing is an endpoint on its first probation since noon.
func failing(p Probation, o Outcome) Health { return after(Health{}, p, o, 10) }

// after is the health after so many deliveries that all ended alike.
func after(h Health, p Probation, o Outcome, deliveries int) Health {
	for range deliveries {
		h = h.After(p, o, noon)
	}
	return h
}

// G7: ten deliveries in a row.
func TestProbationBegins(t *testing.T) {
	for _, tt := range []struct {
		what      string
		probation Probation
		failures  int
		want      State
	}{
		{"nothing happened", Probation{}, 0, Well},
		{"one failure", Probation{}, 1, Suffering},
		{"nine", Probation{}, 9, Suffering},
		{"ten", Probation{}, 10, Waiting},
		{"more, which were on their way", Probation{}, 16, Waiting},
		{"a number of one's own", Probation{After: 2}, 2, Waiting},
		{"less than that", Probation{After: 3}, 2, Suffering},
		{"never", Probation{After: -1}, 5000, Suffering},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := after(Health{}, tt.probation, Busy, tt.failures)
			testkit.Equal(t, h.State(noon), tt.want, "%+v", h)
		})
	}
}

// G7: in a row means that one success in between starts the count again.
func TestASuccessStartsTheCountAgain(t *testing.T) {
	var h Health
	for range 5 {
		h = after(h, Probation{}, Busy, 9).After(Probation{}, Delivered, noon)
	}
	testkit.Equal(t, h, (Health{}))
}

// G7, reference §13: how long by outcome.
func TestProbationByOutcome(t *testing.T) {
	for _, tt := range []struct {
		what      string
		probation Probation
		outcome   Outcome
		want      time.Duration
	}{
		{"busy", Probation{}, Busy, 10 * time.Second},
		{"timed out", Probation{}, TimedOut, 10 * time.Second},
		{"socket", Probation{}, SocketError, 30 * time.Second},
		{"not found", Probation{}, NotFound, 5 * time.Minute},
		{"resolution", Probation{}, ResolutionError, 5 * time.Minute},
		{"disabled", Probation{}, Disabled, 5 * time.Minute},
		{"full", Probation{}, Full, 5 * time.Minute},
		{"unauthorized", Probation{}, Unauthorized, 5 * time.Minute},
		{"forbidden", Probation{}, Forbidden, 5 * time.Minute},
		{"not in the table", Probation{}, GenericError, 10 * time.Second},
		{"one's own", Probation{Waits: map[Outcome]time.Duration{Busy: time.Second}}, Busy, time.Second},
		{"not among one's own", Probation{Waits: map[Outcome]time.Duration{Busy: time.Second}}, SocketError, 30 * time.Second},
		{"all others", Probation{Waits: map[Outcome]time.Duration{"": time.Second}}, SocketError, time.Second},
		{"a cap below it", Probation{Cap: time.Minute}, NotFound, time.Minute},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := failing(tt.probation, tt.outcome)
			want := Health{Failures: 10, Until: noon.Add(tt.want), Trips: 1, Last: tt.outcome, Since: noon}
			testkit.Equal(t, h, want)
			if before, then := h.State(h.Until.Add(-1)), h.State(h.Until); before != Waiting || then != Probing {
				t.Errorf("%s before and %s when it ends", before, then)
			}
		})
	}
}

// G7: longer the longer it stays ill, up to the cap of three hours.
func TestProbationIsDoubled(t *testing.T) {
	h := failing(Probation{}, NotFound)
	for _, minutes := range []int{10, 20, 40, 80, 160, 180, 180, 180} {
		now := h.Until
		h = h.After(Probation{}, NotFound, now)
		if got, want := h.Until.Sub(now), time.Duration(minutes)*time.Minute; got != want {
			t.Errorf("trip %d lasts %v, want %v", h.Trips, got, want)
		}
		testkit.Equal(t, h.Since, noon, "trip %d: began", h.Trips)
	}
	if h = h.After(Probation{}, Delivered, h.Until); h != (Health{}) {
		t.Errorf("after a success: %+v", h)
	}
	if h = after(h, Probation{}, NotFound, 10); h.Until.Sub(noon) != 5*time.Minute {
		t.Errorf("the next illness begins with %v", h.Until.Sub(noon))
	}
}

// G7: what was on its way when probation began makes it no longer; a success of it ends it.
func TestDeliveriesThatWereOnTheirWay(t *testing.T) {
	h := failing(Probation{}, Busy)
	later := h.After(Probation{}, NotFound, noon.Add(time.Second))
	if later.Until != h.Until || later.Trips != 1 || later.Last != NotFound {
		t.Errorf("a failure: %+v", later)
	}
	testkit.Equal(t, h.After(Probation{}, Delivered, noon.Add(time.Second)), (Health{}), "a success")
}

// G7: 400 and 413 are no sign of illness, nor what we did ourselves; nor do they make well.
func TestOutcomesThatChangeNothing(t *testing.T) {
	healths := map[string]Health{"well": {}, "suffering": {Failures: 9, Last: Busy}, "on probation": failing(Probation{}, Busy)}
	for what, h := range healths {
		t.Run(what, func(t *testing.T) {
			for _, o := range []Outcome{BadRequest, PayloadTooLarge, Canceled, Aborted, OnProbation} {
				for _, now := range []time.Time{noon, noon.Add(time.Hour)} {
					testkit.Equal(t, h.After(Probation{}, o, now), h, "%s, %s", what, o)
				}
			}
		})
	}
}

// G7: whatever happens, no probation is longer than its cap, and a success makes well.
func TestProbationNeverLongerThanCap(t *testing.T) {
	outcomes := []Outcome{
		BadRequest, Unauthorized, Forbidden, NotFound, TimedOut, PayloadTooLarge, Busy, GenericError, ResolutionError,
		SocketError, OnProbation, Canceled, Aborted, Full, Disabled,
	}
	rapid.Check(t, func(t *rapid.T) {
		p := Probation{
			After: rapid.IntRange(-1, 20).Draw(t, "after"),
			Cap:   time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "cap")),
			Waits: map[Outcome]time.Duration{"": time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "wait"))},
		}
		limit := p.Cap
		if limit == 0 {
			limit = 3 * time.Hour
		}
		var h Health
		now := noon
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			before := h
			h = h.After(p, rapid.SampledFrom(outcomes).Draw(t, "outcome"), now)
			if h.Until != before.Until && (h.Until.Sub(now) > limit || h.Until.Before(now)) {
				t.Fatalf("%+v at %v with a cap of %v", h, now, limit)
			}
			if h.State(now) == Waiting && rapid.Bool().Draw(t, "pass") {
				now = h.Until
			}
			if now.Sub(noon) > 1<<61 {
				return
			}
		}
		testkit.MustEqual(t, h.After(p, Delivered, now), (Health{}), "after a success")
	})
}
