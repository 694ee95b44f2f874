package functions

import (
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// Forever as a number of retries never gives up.
const Forever = -1

// Retry says how often a call that failed is made again, and after what waits. While events wait
// for it nothing else of their partition (with Lanes: of their lane) is handled, so that order is
// kept.
//
// The zero Retry means the default: five retries, the first after 250 ms, doubling. To try once say
// None.
type Retry struct {
	// Retries are the calls after the first; negative: forever.
	Retries int
	// Delay is before each retry; with Exponential it doubles each time up to Max, with jitter of a
	// fifth either way. Max 0 means 1 min, or Delay if that is longer.
	Delay, Max  time.Duration
	Exponential bool

	// once marks None, as the zero value means the default.
	once bool
}

// None tries once.
func None() Retry { return Retry{once: true} }

// Fixed waits the same before each retry. Retries may be Forever.
func Fixed(retries int, delay time.Duration) Retry {
	return Retry{Retries: retries, Delay: delay, once: retries == 0}
}

// Exponential doubles the wait with each retry, up to a minute: set Max for another limit. Retries
// may be Forever.
func Exponential(retries int, first time.Duration) Retry {
	return Retry{Retries: retries, Delay: first, Exponential: true, once: retries == 0}
}

func (r Retry) withDefaults() Retry {
	if r == (Retry{}) {
		return Exponential(triage.DefaultRetries, triage.DefaultDelay)
	}
	return r
}

func (r Retry) validate() error {
	switch {
	case r.Delay < 0 || r.Max < 0:
		return errors.New("Retry: Delay and Max are not below zero")
	case r.Exponential && r.Max > 0 && r.Max < r.Delay:
		return fmt.Errorf("Retry: Max %v is below Delay %v", r.Max, r.Delay)
	case r.Retries < 0 && r.Delay == 0:
		return errors.New("Retry: unlimited retries need a Delay, as in Fixed(Forever, time.Second)")
	}
	return nil
}

func (r Retry) policy() triage.Policy {
	return triage.Policy{Retries: r.Retries, Delay: r.Delay, Max: r.Max, Exponential: r.Exponential}
}
