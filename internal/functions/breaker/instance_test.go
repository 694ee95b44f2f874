package breaker

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R1, F7: what Decide, Probed and Returned make is an instance's to write, what Hold and Resume
// make an operator's.
func TestByInstance(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy := Policy{Failures: 1, Probe: time.Second}
	decide := func(p Policy, r Record) Record {
		r, changed := Decide(p, View{Record: r, Failures: 9, Self: "a", Ready: true, Unchanged: time.Hour, Incident: "i", Now: now})
		testkit.That(t, changed, "%+v stays", r)
		r.Policy = p
		decoded, err := DecodeRecord(EncodeRecord(r))
		testkit.Must(t, err)
		return decoded
	}
	closed := Record{}
	open := decide(policy, closed)
	half := decide(policy, open)
	stubborn := decide(Policy{Failures: 1}, closed) // without probes
	held, _ := Hold(open, "i", "operator", "", now)
	heldClosed, _ := Hold(closed, "i", "operator", "", now)
	resumed, _ := Resume(open, "operator", "", now)
	resumedHeld, _ := Resume(held, "operator", "", now)
	with := func(r Record, change func(*Record)) Record { change(&r); return r }
	tests := []struct {
		what          string
		before, after Record
		instance      string
		err           error
	}{
		{"it opens", closed, open, "", nil},
		{"something may be put away", closed, with(closed, func(r *Record) { r.State, r.Decided = Closed, map[string]int64{"a": 1} }), "", nil},
		{"something more may be", with(closed, func(r *Record) { r.Decided = map[string]int64{"a": 1} }), with(closed, func(r *Record) { r.Policy = policy }), "", nil},
		{"something may be put away, and the reason is another", closed, with(closed, func(r *Record) { r.Reason = "mended" }), "", errTerm},
		{"something may be put away by an open one", open, with(open, func(r *Record) { r.Decided = map[string]int64{"a": 1} }), "", errTerm},
		{"it is tried", open, half, "a", nil},
		{"another tries", half, decide(policy, half), "a", nil},
		{"the prober lives", half, with(half, func(r *Record) { r.Policy = Policy{} }), "a", nil},
		{"the probe succeeds", half, Probed(half, true, "a", "", now), "a", nil},
		{"the probe fails", half, Probed(half, false, "a", "", now), "a", nil},
		{"the probe is given back", half, Returned(half, "a", now), "a", nil},
		{"it is held", open, held, "", errHolds},
		{"a closed one is held", closed, heldClosed, "", errHolds},
		{"a held one is resumed", held, resumedHeld, "", errHeld},
		{"a held one is opened", held, with(open, func(r *Record) { r.Term = held.Term + 1 }), "", errHeld},
		{"a held one is written again", held, held, "", errHeld},
		{"an open one is resumed", open, resumed, "", errResumes},
		{"one without probes is tried", stubborn, with(half, func(r *Record) { r.Term = stubborn.Term + 1 }), "", errResumes},
		{"an open one is opened again", open, with(open, func(r *Record) { r.Term++ }), "", errResumes},
		{"a closed one is closed", closed, with(resumed, func(r *Record) { r.Term = 1 }), "", errResumes},
		{"the term leaps", closed, with(open, func(r *Record) { r.Term = maxTerm }), "", errTerm},
		{"the term falls", open, with(half, func(r *Record) { r.Term = 0 }), "", errTerm},
		{"the incident is another", open, with(half, func(r *Record) { r.Incident = "j" }), "", errTerm},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			instance, err := ByInstance(tt.before, tt.after)
			testkit.Equal(t, err, tt.err, "error")
			testkit.Equal(t, instance, tt.instance, "instance")
		})
	}
}
