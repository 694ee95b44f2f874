// Package filter decides which events a subscription gets: by type, by subject, and by
// Event Grid's nineteen advanced operators. It is pure. An Index answers for thousands of
// subscriptions at once: it finds the few that an event may match by what their filters are
// most selective about, and looks at each value of the event at most once.
//
// Publishers are strangers. What an event costs is in proportion to its length and, apart from
// that, to how many filters have to be asked, never to the product of both: of values that are
// long and asked about often, indexes are made.
//
// Where Event Grid's documentation leaves a question open, the answer here is:
//
//   - null counts as a missing key, for every operator.
//   - A value of another type than the operator's never passes, not even a negative
//     operator. Elements of an array of another type are skipped, so an array without any
//     of the right type passes negative operators only.
//   - IsNotNull and IsNullOrUndefined only ask whether there is a value; an array is one,
//     with or without enableAdvancedFilteringOnArrays.
//   - Case is ignored as Unicode's simple folding has it, rune by rune.
//   - Numbers are compared as decimals, by their first 38 digits.
//   - Of several members with one name the first counts.
package filter

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

const (
	// MaxConditions is the most advanced filters that a filter may have, MaxValues the most
	// values in all of them together, a range being one.
	MaxConditions = 25
	MaxValues     = 25
	// MaxValueLength is the most characters that a text may have.
	MaxValueLength = 512
	// MaxKeyParts is how deep a key may lead.
	MaxKeyParts = 32
)

// ErrInvalid: a filter, or a condition of one, is not what Event Grid allows.
var ErrInvalid = errors.New("filter is not allowed")

// Config is a filter as users write it: Event Grid's management shape. All given parts have
// to match.
type Config struct {
	// EventTypes is includedEventTypes; empty, or "All" alone, takes every type. Any case.
	EventTypes []string `json:"includedEventTypes,omitempty"`
	// SubjectBeginsWith and SubjectEndsWith are plain text; empty takes all.
	SubjectBeginsWith    string `json:"subjectBeginsWith,omitempty"`
	SubjectEndsWith      string `json:"subjectEndsWith,omitempty"`
	SubjectCaseSensitive bool   `json:"isSubjectCaseSensitive,omitempty"`
	// Arrays is enableAdvancedFilteringOnArrays.
	Arrays   bool        `json:"enableAdvancedFilteringOnArrays,omitempty"`
	Advanced []Condition `json:"advancedFilters,omitempty"`
	// DomainTopic takes events of this topic of a domain only; empty: all. No user writes it: it
	// follows from what a subscription is of.
	DomainTopic string `json:"-"`
}

// Condition is one advanced filter.
type Condition struct {
	Operator string          `json:"operatorType"`
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
}

// Filter is a checked filter. It is immutable.
type Filter struct {
	layout *layout
	// keys are what the conditions ask about; a condition's slot is an index in here.
	keys  []key
	conds []cond
}

// Match says whether an event passes.
func (f *Filter) Match(e *schema.Envelope) bool {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.load(f.layout, e)
	defer s.release()
	return s.holdAll(f.conds)
}

// slot gives the index of a key, which is a new one if nothing asked about it before.
func (f *Filter) slot(k key) int32 {
	if i := slices.IndexFunc(f.keys, k.equal); i >= 0 {
		return int32(i)
	}
	f.keys = append(f.keys, k)
	return int32(len(f.keys) - 1)
}
