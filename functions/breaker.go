package functions

import (
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
)

// Breaker says when a function's circuit opens, for all instances at once. The zero Breaker opens
// it on more than 100 failures within 30 s, until somebody resumes it.
type Breaker struct {
	// More than Failures (0: 100) within Within (0: 30 s), over all instances, open the circuit.
	Failures int
	Within   time.Duration
	// Off never opens it by itself. Hold still does.
	Off bool
	// Probe is how long it stays open before one instance tries one event. If that goes well the
	// circuit is closed; each time it does not the wait doubles, up to ProbeMax (0: 5 min, or Probe
	// if that is longer). 0: it stays open until somebody resumes it.
	Probe, ProbeMax time.Duration
	// Attempts counts every failed call. By default only events that have used up their retries
	// count; but with unlimited retries, which nothing uses up, calls do.
	Attempts bool
}

func (b Breaker) validate() error {
	switch {
	case b.Failures < 0:
		return errors.New("Breaker: Failures are not below zero; set Off for none")
	case b.Within < 0 || b.Probe < 0 || b.ProbeMax < 0:
		return errors.New("Breaker: Within, Probe and ProbeMax are not below zero")
	case b.ProbeMax > 0 && b.ProbeMax < b.Probe:
		return fmt.Errorf("Breaker: ProbeMax %v is below Probe %v", b.ProbeMax, b.Probe)
	}
	return nil
}

func (b Breaker) policy() breaker.Policy {
	p := breaker.Policy{Failures: b.Failures, Within: b.Within, Probe: b.Probe, ProbeMax: b.ProbeMax, Attempts: b.Attempts}
	if b.Off {
		p.Failures = -1
	}
	return p
}
