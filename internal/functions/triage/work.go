package triage

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// Work is the record of a function's work on one partition, an entry in the processor's store
// beside the checkpoint (F2 to F4). On the happy path it is written twice for each ownership: when
// it begins and when it ends well.
//
// A copy is a record of its own: no method changes what another copy has.
type Work struct {
	// Epoch is the lease's, under which it was written; Instance who wrote it.
	Epoch    int64  `json:"epoch"`
	Instance string `json:"instance,omitempty"`
	// Clean: the owner ended in good order. Begun is the checkpoint it began with, or the newest
	// that Passed was given; Stalls how many owners died there without having moved it. A good
	// ending in between takes none back: it moved nothing either.
	Clean  bool  `json:"clean,omitempty"`
	Begun  int64 `json:"begun"`
	Stalls int   `json:"stalls,omitempty"`
	// Units are those that have failed, or are under suspicion, and are not done, by their first
	// event. No event is in two.
	Units []Unit `json:"units,omitempty"`
	// Away are events above the checkpoint that were put away: they are not called, or put away,
	// again.
	Away ranges.Set `json:"away,omitempty"`
	// Intent is the put-away under way; nil: none. Waiting are those of owners that died in the
	// midst of it, where another event's could not wait until theirs came again.
	Intent  *Intent  `json:"intent,omitempty"`
	Waiting []Intent `json:"waiting,omitempty"`
	// Producer is who writes into the poison hub, Number the next event's; a yard's hub stores each
	// number once. 0: none is chosen yet.
	Producer int64 `json:"producer,omitempty"`
	Number   int32 `json:"number,omitempty"`
	// Later are fields that a later version has added. They are kept as they are.
	Later map[string]json.RawMessage `json:"-"`
}

// stalls is how many owners may die at a checkpoint before what comes next is under suspicion.
const stalls = 3

// Suspect: calls are to be recorded before they are made, since owners have died without getting
// on.
func (w Work) Suspect() bool { return w.Stalls >= stalls }

// Calm: nothing is known that a batch of events would have to heed: they are one fresh unit, and
// their call is not recorded.
func (w Work) Calm() bool {
	return len(w.Units) == 0 && len(w.Away) == 0 && w.Intent == nil && len(w.Waiting) == 0 && !w.Suspect()
}

// Recorded says whether a call for the unit is to be recorded (Calling) before it is made.
func (w Work) Recorded(u Unit) bool { return w.Suspect() || !u.blank() }

// Wary says whether no other call of the process may run beside one for the unit: instances have
// died in the last few, or there is suspicion and none has ended yet. The next death must show
// whose doing it is: only deaths in such calls are counted against anybody.
func (w Work) Wary(u Unit) bool {
	return u.Deaths > 0 && u.Ended < acquitted || u.Attempts == 0 && w.Suspect()
}

// Put replaces what is recorded of the events of u by u. A unit of which nothing is known needs no
// record.
func (w *Work) Put(u Unit) {
	w.Drop(u.Events)
	if u.blank() || len(u.Events) == 0 {
		return
	}
	w.Units = byFirst(append(slices.Clip(w.Units), u))
}

// Drop forgets what is recorded of events. Others of their units keep their numbers.
func (w *Work) Drop(s ranges.Set) {
	if len(s) == 0 || len(w.Units) == 0 {
		return
	}
	w.keep(func(events ranges.Set) ranges.Set { return events.Minus(s) })
}

// Settle records what becomes of a unit's parts: what is finished is forgotten, the rest is kept.
func (w *Work) Settle(parts []Part) {
	for _, part := range parts {
		if part.Do == Finish {
			w.Drop(part.Events)
		} else {
			w.Put(part.Unit)
		}
	}
}

// Passed forgets everything up to the checkpoint, which is stored. That one lies further back than
// the last is for Begin to notice.
func (w *Work) Passed(checkpoint int64) {
	if checkpoint > w.Begun {
		w.Begun, w.Stalls = checkpoint, 0
	}
	w.keep(func(events ranges.Set) ranges.Set { return events.Above(checkpoint) })
	w.Away = w.Away.Above(checkpoint)
	if w.Intent != nil && w.Intent.Sequence <= checkpoint {
		w.abandon()
	}
	w.Waiting = without(w.Waiting, func(i Intent) bool { return i.Sequence <= checkpoint })
}

// keep reduces each unit to what rest gives of its events.
func (w *Work) keep(rest func(ranges.Set) ranges.Set) {
	var units []Unit
	for _, u := range w.Units {
		if events := rest(u.Events); len(events) > 0 {
			units = append(units, u.part(events))
		}
	}
	w.Units = byFirst(units)
}

func byFirst(units []Unit) []Unit {
	slices.SortFunc(units, func(a, b Unit) int { return cmp.Compare(a.Events.First(), b.Events.First()) })
	return units
}

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
