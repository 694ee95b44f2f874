package breaker

import (
	"cmp"
	"time"
)

// Policy says when a circuit opens, and whether it tries to close by itself.
type Policy struct {
	// More than Failures (0: 100; negative: it never opens by itself) within Within (0: 30 s) over
	// all instances open it.
	Failures int           `json:"failures,omitempty"`
	Within   time.Duration `json:"within,omitempty"`
	// Probe is how long it stays open before one event is tried; 0: until somebody resumes it.
	// Each failed probe doubles the wait, up to ProbeMax (0: 5 min, or Probe if that is longer).
	Probe    time.Duration `json:"probe,omitempty"`
	ProbeMax time.Duration `json:"probeMax,omitempty"`
	// Attempts: failed attempts are counted, not only events that used up their retries.
	Attempts bool `json:"attempts,omitempty"`
}

const (
	defaultFailures = 100
	defaultWithin   = 30 * time.Second
	defaultProbeMax = 5 * time.Minute
	// untriedWait is how soon a probe that nobody made is made by another. Not at once: a prober
	// whose partitions are all being moved would otherwise take and give back as fast as the store
	// can write.
	untriedWait = time.Second
)

// WithDefaults is the policy with everything filled in; one that never probes has no ProbeMax.
func (p Policy) WithDefaults() Policy {
	p.Failures = cmp.Or(p.Failures, defaultFailures)
	if p.Within <= 0 {
		p.Within = defaultWithin
	}
	if p.Probe <= 0 {
		p.Probe, p.ProbeMax = 0, 0
		return p
	}
	if p.ProbeMax <= 0 {
		p.ProbeMax = defaultProbeMax
	}
	p.ProbeMax = max(p.ProbeMax, p.Probe)
	return p
}

// ProbeWait is how long a record stays Open before one event is tried; false: until somebody
// resumes it.
func (p Policy) ProbeWait(r Record) (time.Duration, bool) {
	p = p.WithDefaults()
	if p.Probe == 0 {
		return 0, false
	}
	wait := p.Probe
	for n := 0; n < r.Trips && wait < p.ProbeMax; n++ {
		wait += min(wait, p.ProbeMax-wait)
	}
	if r.Untried {
		wait = min(wait, untriedWait)
	}
	return wait, true
}

// Counts is how many failures it makes if so many events are put away: none where their attempts
// were counted before.
func (p Policy) Counts(events int) int {
	if p.Attempts {
		return 0
	}
	return events
}

// Room is how many of so many events may be put away when there are so many failures: as many as
// leave the circuit closed.
func (p Policy) Room(failures, events int) int {
	switch {
	case p.Failures < 0:
		return events
	case p.Attempts && !p.tripped(failures):
		return events
	case p.Attempts:
		return 0
	}
	return min(events, max(p.Failures-failures, 0))
}

// tripped tells whether so many failures open a circuit: more than, not as many as.
func (p Policy) tripped(failures int) bool { return p.Failures >= 0 && failures > p.Failures }
