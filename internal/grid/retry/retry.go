// Package retry decides what becomes of a delivery: whether an answer is a success, when it
// is tried again, when it is given up, and when an endpoint is put on probation. It is pure:
// the answer, the policy and the time go in, a verdict comes out.
package retry

import (
	"cmp"
	"slices"
	"time"
)

// Attempt is one that was made and did not succeed, or did.
type Attempt struct {
	// Number counts those made, this one included.
	Number int
	// Status is the HTTP status, 0 where there was no answer.
	Status  int
	Outcome Outcome
	// RetryAfter is what the receiver asked for; zero: nothing.
	RetryAfter time.Duration
	// Untried: a quota of the yard's own refused it before anybody was asked. It is no attempt, so
	// that Number does not count it, and is tried again however many there were.
	Untried bool
}

// Action is what to do with an event.
type Action int

const (
	Done   Action = iota // it was delivered
	Again                // after Wait
	GiveUp               // Reason says why: dead-letter it, or drop it
)

// Why an event is dead-lettered or dropped.
const (
	ReasonAttempts = "MaxDeliveryAttemptsExceeded"
	ReasonAge      = "TimeToLiveExceeded"
	ReasonRefused  = "UndeliverableDueToClientError"
	ReasonHops     = "HopLimitExceeded"
)

// Verdict is what becomes of an event.
type Verdict struct {
	Do     Action
	Wait   time.Duration // exact, before jitter and rounding to a retry log
	Reason string
}

// Judge decides on an attempt (G3 to G6). Time to live is not looked at here: it is checked
// when the next attempt falls due, by Expired.
//
// An attempt that was refused for good is so even when it was the last allowed: the reason in
// the dead letter is then what its reader can do something about.
func Judge(p Policy, a Attempt) Verdict {
	// A hub has no HTTP: then the status is what it would have answered. Outcomes that several
	// statuses share, and those without an answer, have none.
	status := cmp.Or(a.Status, unambiguous[a.Outcome])
	switch {
	case a.Outcome == Delivered, a.Outcome == "" && Classify(a.Status) == Delivered:
		return Verdict{Do: Done}
	case a.Outcome == LoopDetected:
		return Verdict{Do: GiveUp, Reason: ReasonHops}
	case !a.Untried && p.refused(status):
		return Verdict{Do: GiveUp, Reason: ReasonRefused}
	case !a.Untried && a.Number >= p.attempts():
		return Verdict{Do: GiveUp, Reason: ReasonAttempts}
	}
	return Verdict{Do: Again, Wait: max(p.step(a.Number), p.floor(status), p.asked(status, a.RetryAfter))}
}

// Expired reports whether an event that falls due has outlived its time (G6): one that falls due
// just when its time ends has.
func Expired(p Policy, published, now time.Time) bool {
	return now.Sub(published) >= p.timeToLive()
}

func (p Policy) attempts() int { return cmp.Or(p.MaxAttempts, DefaultAttempts) }

func (p Policy) timeToLive() time.Duration { return cmp.Or(p.TimeToLive, DefaultTimeToLive) }

// refused reports whether a status is given up at once (G4).
func (p Policy) refused(status int) bool {
	switch {
	case status == 0:
		return false
	case p.NoRetry != nil:
		return slices.Contains(p.NoRetry, status)
	case p.Resource:
		return slices.Contains(refusedByResources, status)
	}
	return slices.Contains(refusedByWebhooks, status)
}

// step is the schedule's wait after so many attempts; the last is repeated.
func (p Policy) step(attempts int) time.Duration {
	schedule := p.Schedule
	if len(schedule) == 0 {
		schedule = defaultSchedule
	}
	return schedule[min(max(attempts, 1), len(schedule))-1]
}

// floor is the least wait after a status (G5). What stands in the policy goes before what is
// default, and a status before all others.
func (p Policy) floor(status int) time.Duration {
	if d, ok := p.Floors[status]; ok {
		return d
	}
	if d, ok := p.defaultFloor(status); ok {
		return d
	}
	if d, ok := p.Floors[0]; ok {
		return d
	}
	d, _ := p.defaultFloor(0)
	return d
}

func (p Policy) defaultFloor(status int) (time.Duration, bool) {
	if len(p.Schedule) > 0 {
		return 0, false
	}
	if d, ok := defaultFloors[status]; ok {
		return d, true
	}
	if p.Resource && (status == 401 || status == 404) {
		return resourceFloor, true
	}
	return 0, false
}

// asked is what of a Retry-After is honoured: it may lengthen a wait, never shorten it. The
// cap keeps a receiver from putting events off until they are too old.
func (p Policy) asked(status int, retryAfter time.Duration) time.Duration {
	if status != 429 && status != 503 {
		return 0
	}
	return min(retryAfter, cmp.Or(p.MaxRetryAfter, DefaultMaxRetryAfter))
}
