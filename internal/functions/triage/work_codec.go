package triage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// maxWorkBytes is what an entry may have.
const maxWorkBytes = 16 << 10

// ErrTooLarge: so much is away above the checkpoint that it cannot be recorded. What is furthest
// above it is best forgotten: it comes again only if this instance dies.
var ErrTooLarge = errors.New("more is put away above the checkpoint than a record holds")

// EncodeWork gives at most 16 KiB: what does not fit is the least needed (reasons, then the
// attempts of the last units, then their deaths), never Away, Intent or Later; an error only where
// those alone are too large, or where the record makes no sense: DecodeWork reads all that is
// given. Whoever could store an Intent can store that it was Sent.
func EncodeWork(w Work) ([]byte, error) {
	w.Units, w.Waiting = byFirst(slices.Clone(w.Units)), slices.Clone(w.Waiting)
	// Shortened reasons are valid text too, so that they are read as they were.
	for i := range w.Units {
		w.Units[i].Reason = shorten(w.Units[i].Reason, maxReasonBytes)
	}
	if w.Intent != nil {
		intent := *w.Intent
		intent.Reason = shorten(intent.Reason, maxIntentReasonBytes)
		w.Intent = &intent
	}
	for i := range w.Waiting {
		w.Waiting[i].Reason = shorten(w.Waiting[i].Reason, maxWaitingReasonBytes)
	}
	if err := w.check(); err != nil {
		return nil, fmt.Errorf("encode work: %w", err)
	}
	b, err := fit(w)
	if err != nil {
		return nil, fmt.Errorf("encode work: %w", err)
	}
	return b, nil
}

// DecodeWork reads a record; whoever wrote it, what it gives makes sense. What cannot be read is
// best begun with the zero Work: attempts are forgotten then, and what is away may be put away
// again, but no event is lost. What a later version has added to the record comes back with
// EncodeWork; what it has added to units and intents does not.
func DecodeWork(b []byte) (Work, error) {
	if len(b) > maxWorkBytes {
		return Work{}, fmt.Errorf("decode work: it has %d bytes, at most %d are allowed", len(b), maxWorkBytes)
	}
	var w Work
	err := json.Unmarshal(b, &w)
	if err == nil {
		err = w.check()
	}
	if err != nil {
		return Work{}, fmt.Errorf("decode work: %w", err)
	}
	return w, nil
}

// plain is Work as the library knows it.
type plain Work

// fields are the names of those that this version knows.
var fields = func() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Work]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// UnmarshalJSON keeps what it does not know in Later.
func (w *Work) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(b, (*plain)(w)), json.Unmarshal(b, &all)); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(fields, func(known string) bool { return strings.EqualFold(known, name) })
	})
	if len(all) > 0 {
		w.Later = all
	}
	return nil
}

// MarshalJSON adds Later.
func (w Work) MarshalJSON() ([]byte, error) {
	b, err := marshal(plain(w))
	if err != nil || len(w.Later) == 0 {
		return b, err
	}
	later, err := marshal(w.Later)
	return slices.Concat(b[:len(b)-1], []byte(","), later[1:]), err
}

// marshal is JSON in which '<' is no six bytes: reasons are often pages of HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// check reports what makes no sense.
func (w Work) check() error {
	switch {
	case w.Epoch < 0 || w.Begun < -1 || w.Producer < 0 || w.Number < 0 || !isCount(w.Stalls):
		return fmt.Errorf("epoch %d, begun %d, stalls %d, producer %d or number %d is impossible",
			w.Epoch, w.Begun, w.Stalls, w.Producer, w.Number)
	case !w.Away.Valid():
		return fmt.Errorf("away %.64v is no set", w.Away)
	}
	if err := w.checkIntents(); err != nil {
		return err
	}
	return checkUnits(w.Units)
}

// checkIntents reports intents that are impossible, two of one event, or of one that is away.
func (w Work) checkIntents() error {
	all := w.Waiting
	if w.Intent != nil {
		all = append(slices.Clip(all), *w.Intent)
	}
	seen := w.Away
	for _, i := range all {
		if i.Sequence < 0 || i.Producer < 0 || i.Number < 0 || !isCount(i.Attempts) || !isCount(i.Deaths) {
			return fmt.Errorf("intent of sequence %d, producer %d, number %d, attempts %d, deaths %d is impossible",
				i.Sequence, i.Producer, i.Number, i.Attempts, i.Deaths)
		}
		if seen.Has(i.Sequence) {
			return fmt.Errorf("event %d is to be put away twice", i.Sequence)
		}
		seen = seen.Add(i.Sequence)
	}
	return nil
}

// checkUnits reports units that are out of order, overlap or have impossible numbers.
func checkUnits(units []Unit) error {
	var all []ranges.Range
	for i, u := range units {
		switch {
		case len(u.Events) == 0 || !u.Events.Valid():
			return fmt.Errorf("unit %d: its events %.64v are no set", i, u.Events)
		case !isCount(u.Attempts) || !isCount(u.Used) || !isCount(u.Deaths) || !isCount(u.Counted) || !isCount(u.Ended) || !isCount(u.Down):
			return fmt.Errorf("unit %d: attempts %d, used %d, deaths %d, counted %d, ended %d or down %d is impossible",
				i, u.Attempts, u.Used, u.Deaths, u.Counted, u.Ended, u.Down)
		case i > 0 && u.Events.First() < units[i-1].Events.First():
			return fmt.Errorf("unit %d is out of order", i)
		}
		all = append(all, u.Events...)
	}
	slices.SortFunc(all, func(a, b ranges.Range) int { return cmp.Compare(a.First, b.First) })
	for i := 1; i < len(all); i++ {
		if all[i].First <= all[i-1].Last {
			return fmt.Errorf("event %d is in two units", all[i].First)
		}
	}
	return nil
}

func isCount(n int) bool { return 0 <= n && n <= maxCount }

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
