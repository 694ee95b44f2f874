package triage

import (
	"cmp"
	"errors"
	"slices"
)

// fit encodes with what there is room for. The record's lists are its own.
func fit(w Work) ([]byte, error) {
	for _, reasonBytes := range []int{maxReasonBytes, 48, 0} {
		for i := range w.Units {
			w.Units[i].Reason = shorten(w.Units[i].Reason, reasonBytes)
		}
		for i := range w.Waiting {
			w.Waiting[i].Reason = shorten(w.Waiting[i].Reason, reasonBytes)
		}
		if b, err := marshal(w); err != nil || len(b) <= maxWorkBytes {
			return b, err
		}
	}
	return fitUnits(w)
}

// errNoRoom: not even without Away there is room. To wait for the checkpoint would be in vain.
var errNoRoom = errors.New("what a later version has added to the record leaves no room: run that version")

// unitsRoom is what is left for units at least, so that a call under suspicion is recorded.
const unitsRoom = 4 << 10

// fitUnits leaves out units that do not fit.
func fitUnits(w Work) ([]byte, error) {
	units := w.Units
	w.Units = nil
	b, err := marshal(w)
	if err != nil {
		return nil, err
	}
	room := maxWorkBytes - len(b) - len(`"units":[],`)
	switch {
	case room < unitsRoom && len(w.Away) == 0:
		return nil, errNoRoom
	case room < unitsRoom:
		return nil, ErrTooLarge
	}
	slices.SortStableFunc(units, func(a, b Unit) int { return cmp.Compare(b.need(), a.need()) })
	for _, u := range units {
		b, err := marshal(u)
		if err != nil {
			return nil, err
		}
		if size := len(b) + len(","); size <= room {
			room -= size
			w.Units = append(w.Units, u)
		}
	}
	w.Units = byFirst(w.Units)
	return marshal(w)
}

// need is how much a unit is needed in the record: without deaths a crash loop would not end,
// without attempts something is only tried more often than it has to be.
func (u Unit) need() int {
	switch {
	case u.Calling:
		return 2
	case u.Deaths > 0:
		return 1
	}
	return 0
}
