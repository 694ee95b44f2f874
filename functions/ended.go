package functions

import (
	"iter"
	"time"

	"github.com/eventyard/eventyard/internal/functions/triage"
)

// Ended is what came of a call.
type Ended struct {
	Began time.Time
	Took  time.Duration
	// Err is what the handler returned, or why it did not; nil: all went well.
	Err error
	// Cancelled: the partition was taken away meanwhile, and the call counts for nothing.
	Cancelled bool

	judgement judgement
}

// Finding is what a call says of events. Outcome is done, failed, poison, skipped, untouched (not tried) or
// unavailable: what the function needs is down.
type Finding struct{ Outcome, Reason string }

// Whole is what the call says of all events that are not singled out.
func (e Ended) Whole() Finding { return findingOf(e.judgement.whole) }

// Singled are the events of which it says something of their own, by sequence number.
func (e Ended) Singled() iter.Seq2[int64, Finding] {
	return func(yield func(int64, Finding) bool) {
		for sequence, r := range e.judgement.each {
			if !yield(sequence, findingOf(r)) {
				return
			}
		}
	}
}

func findingOf(r triage.Result) Finding {
	return Finding{[triage.Verdicts]string{
		triage.Done: "done", triage.Failed: "failed", triage.Later: "failed", triage.Poison: "poison", triage.Skip: "skipped",
		triage.Untouched: "untouched", triage.Unavailable: "unavailable", triage.Unreachable: "unavailable",
	}[r.Verdict], r.Reason}
}
