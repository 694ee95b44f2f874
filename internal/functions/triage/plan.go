package triage

import (
	"slices"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Plan divides events that have come (their sequence numbers, in order) into units to call, left to
// right: those of recorded units with what is recorded, all others as fresh units; events that are
// away are left out. An event that was about to be put away is a unit by itself.
//
// After a crash batches may be cut in other ways, and lanes deal keys anew. So a recorded unit may
// come in parts, in several batches or with others in between: each part has the numbers of the
// whole, and nothing comes before what is left of it.
func (w Work) Plan(events []int64) []Unit {
	if len(w.Away) > 0 {
		events = slices.DeleteFunc(slices.Clone(events), w.Away.Has)
	}
	if len(w.Units) == 0 && w.Intent == nil && len(w.Waiting) == 0 && len(events) > 0 {
		return w.fresh(ranges.SetOf(events...))
	}
	var units []Unit
	for len(events) > 0 {
		n, kind := 1, w.kind(events[0])
		for n < len(events) && w.kind(events[n]) == kind {
			n++
		}
		some := ranges.SetOf(events[:n]...)
		switch {
		case kind == fresh:
			units = append(units, w.fresh(some)...)
		case kind <= intended:
			intent, _ := w.intentOf(some.First())
			units = append(units, Unit{Events: some, Attempts: intent.Attempts, Deaths: intent.Deaths, Reason: intent.Reason})
		default:
			u := w.Units[kind].part(some)
			u.Calling = false
			units = append(units, u)
		}
		events = events[n:]
	}
	return units
}

// mostRanges is how many ranges of events a unit has under suspicion, so that there is room for it
// in the record, however lanes scatter them: of a call that is not recorded instances would die for
// ever.
const mostRanges = 64

// fresh are units of events of which nothing is known.
func (w Work) fresh(events ranges.Set) (units []Unit) {
	if !w.Suspect() {
		return []Unit{{Events: events}}
	}
	for some := range slices.Chunk(events, mostRanges) {
		units = append(units, Unit{Events: some})
	}
	return units
}

// What an event is to Plan, if it is not the index of its unit: fresh, or intended and below.
const (
	fresh    = -1
	intended = -2
)

func (w Work) kind(n int64) int {
	if w.Intent != nil && w.Intent.Sequence == n {
		return intended
	}
	if i := slices.IndexFunc(w.Waiting, func(i Intent) bool { return i.Sequence == n }); i >= 0 {
		return intended - 1 - i
	}
	return slices.IndexFunc(w.Units, func(u Unit) bool { return u.Events.Has(n) }) // fresh, if there is none
}
