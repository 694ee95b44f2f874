package functions

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/functions/invoke"
	"github.com/eventyard/eventyard/internal/functions/triage"
)

// RetryAfter lets the events come again after d in place of the policy's delay. It is a failed
// attempt all the same, and uses up a retry. cause may be nil.
func RetryAfter(d time.Duration, cause error) error {
	return &retryAfter{wait: max(d, 0), cause: cause}
}

// Poison puts the events away without further tries. A batch of several is divided first, so that
// only those go of which it is said when they are alone, or by Results. cause may be nil.
func Poison(cause error) error { return &poisonous{cause} }

// Unavailable says that what the function needs is down: a database, another program. No event is
// put away for that: the events wait and are tried again, and the circuit breaker counts it once
// that has lasted for longer than the retries. If cause shows that nothing was reached at all (a
// connection refused, no such host, a failed TLS handshake) that is final. Otherwise the event may
// be what brings it down: where calls for others succeed between its attempts it has failed as with
// any other error. Around or within RetryAfter it is tried again after that time. cause may be nil.
func Unavailable(cause error) error { return &unavailable{cause, invoke.NotReached(cause)} }

// Skip is done with the events: they are counted as skipped, and neither tried again nor put away.
func Skip(reason string) error { return &skipped{reason} }

// Results is the verdict on single events of a batch, for handlers that know which have failed:
//
//	return &functions.Results{Failed: map[int]error{3: err}}
type Results struct {
	// Failed has errors by index in Batch.Events. Each may be RetryAfter, Poison, Unavailable or
	// Skip. Events neither here nor in Untouched are done. The failed ones come again together,
	// without the others, and when they have used up their retries each is put away, as it is known
	// which they are.
	Failed map[int]error
	// Untouched are indexes of events that were not tried: they come again behind the failed ones
	// with the attempts they had. A call that leaves all untouched is made again after a while.
	Untouched []int
}

func (r *Results) Error() string {
	first := -1
	for target, err := range r.Failed {
		if err != nil && (first < 0 || target < first) {
			first = target
		}
	}
	if first < 0 {
		return fmt.Sprintf("%d events untouched", len(r.Untouched))
	}
	return fmt.Sprintf("%d failed, the first at index %d: %v", len(r.Failed), first, r.Failed[first])
}

// Unwrap gives the errors of the single events.
func (r *Results) Unwrap() []error {
	var errs []error
	for _, err := range r.Failed {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

type retryAfter struct {
	wait  time.Duration
	cause error
}

func (e *retryAfter) Error() string { return spoken(e.cause, fmt.Sprintf("again after %v", e.wait)) }
func (e *retryAfter) Unwrap() error { return e.cause }

type poisonous struct{ cause error }

func (e *poisonous) Error() string { return spoken(e.cause, "the handler says that it is poison") }
func (e *poisonous) Unwrap() error { return e.cause }

type unavailable struct {
	cause     error
	unreached bool // nothing was reached: no event can be what brought it down
}

func (e *unavailable) Error() string { return spoken(e.cause, "what the function needs is down") }
func (e *unavailable) Unwrap() error { return e.cause }

func (e *unavailable) verdict() triage.Verdict {
	if e.unreached {
		return triage.Unreachable
	}
	return triage.Unavailable
}

type skipped struct{ reason string }

func (e *skipped) Error() string { return "skipped: " + e.reason }

// spoken is the cause's text, or where there is none what is known anyway.
func spoken(cause error, otherwise string) string {
	if cause == nil {
		return otherwise
	}
	return cause.Error()
}

// judgement is what a call says of its events.
type judgement struct {
	whole triage.Result
	each  map[int64]triage.Result // of single events, by sequence number
	errs  map[int64]error         // whence those came
}

// judge reads a handler's error. Verdicts are found through any wrapping; Results count before all
// others, since they may hold some.
func judge(err error, events []event.Event) judgement {
	var results *Results
	if errors.As(err, &results) && results != nil {
		return judgeResults(results, events)
	}
	return judgement{whole: judgeOne(err)}
}

func judgeOne(err error) triage.Result {
	var skip *skipped
	var poison *poisonous
	var later *retryAfter
	var down *unavailable
	switch {
	case err == nil:
		return triage.Result{Verdict: triage.Done}
	case errors.As(err, &skip):
		return triage.Result{Verdict: triage.Skip, Reason: skip.reason}
	case errors.As(err, &poison):
		return triage.Result{Verdict: triage.Poison, Reason: reason(err)}
	case errors.As(err, &down):
		r := triage.Result{Verdict: down.verdict(), Reason: reason(err)}
		if errors.As(err, &later) {
			r.Wait = later.wait
		}
		return r
	case errors.As(err, &later):
		return triage.Result{Verdict: triage.Later, Wait: later.wait, Reason: reason(err)}
	}
	return triage.Result{Verdict: triage.Failed, Reason: reason(err)}
}

func judgeResults(r *Results, events []event.Event) judgement {
	j := judgement{each: map[int64]triage.Result{}, errs: map[int64]error{}}
	for target, err := range r.Failed {
		if target < 0 || target >= len(events) {
			return misplaced(target, len(events))
		}
		if err != nil {
			j.each[events[target].Sequence], j.errs[events[target].Sequence] = judgeOne(err), err
		}
	}
	for _, target := range r.Untouched {
		if target < 0 || target >= len(events) {
			return misplaced(target, len(events))
		}
		if seq := events[target].Sequence; j.errs[seq] == nil {
			j.each[seq] = triage.Result{Verdict: triage.Untouched}
		}
	}
	return j
}

// misplaced is of a handler that has miscounted: what it says cannot be believed of any event.
func misplaced(target, events int) judgement {
	text := fmt.Sprintf("the handler's Results name index %d of %d events: indexes count from 0 in Batch.Events", target, events)
	return judgement{whole: triage.Result{Verdict: triage.Failed, Reason: text}}
}

// bad tells whether something has failed.
func (j judgement) bad() bool {
	if failing(j.whole.Verdict) {
		return true
	}
	return j.any(failing)
}

func failing(v triage.Verdict) bool {
	return v == triage.Failed || v == triage.Later || v == triage.Poison || isDown(v)
}

// isDown tells of a failure that may not be the events' fault.
func isDown(v triage.Verdict) bool { return v == triage.Unavailable || v == triage.Unreachable }

// down tells whether what the function needs was found to be down.
func (j judgement) down() bool {
	return isDown(j.whole.Verdict) || j.any(isDown)
}

// broke tells whether what the function needs was reached and broke down.
func (j judgement) broke() bool {
	unavailable := func(v triage.Verdict) bool { return v == triage.Unavailable }
	return unavailable(j.whole.Verdict) || j.any(unavailable)
}

// any tells whether a result of a single event is of a kind.
func (j judgement) any(kind func(triage.Verdict) bool) bool {
	for _, r := range j.each {
		if kind(r.Verdict) {
			return true
		}
	}
	return false
}

// succeeded tells whether anything was done, of so many events.
func (j judgement) succeeded(events int) bool {
	good := func(v triage.Verdict) bool { return v == triage.Done || v == triage.Skip }
	return good(j.whole.Verdict) && len(j.each) < events || j.any(good)
}

// done: every event is, and none was skipped.
func (j judgement) done() bool { return len(j.each) == 0 && j.whole.Verdict == triage.Done }

// reason is an error's text as poison events and records have it: something, in any case.
func reason(err error) string {
	if text := strings.TrimSpace(err.Error()); text != "" {
		return text
	}
	return fmt.Sprintf("an error without a text (%T)", err)
}
