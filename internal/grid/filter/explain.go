package filter

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Finding is what one condition of a filter says of an event.
type Finding struct {
	// Condition is the condition in the form of an advanced filter, whichever part of the filter it
	// comes from.
	Condition Condition `json:"condition"`
	// Met is what the event has for the key, as JSON; nil: nothing. Long values are cut, and a text
	// then: Cut says so.
	Met json.RawMessage `json:"met,omitempty"`
	Cut bool            `json:"cut,omitempty"`
	// Passes says whether the event meets the condition.
	Passes bool `json:"passes"`
}

// maxMet is how much of a value a finding shows.
const maxMet = 512

// Explain says of each condition what it met in the event, and whether that passes. The event passes
// the filter if all do; no condition: it passes. Errors are those of Compile.
func Explain(cfg Config, e *schema.Envelope) ([]Finding, error) {
	if _, err := Compile(cfg); err != nil {
		return nil, err // the bounds of all together, too
	}
	var all []Finding
	for _, one := range apart(cfg) {
		f, err := Compile(one.alone)
		if err != nil {
			return nil, err
		}
		if len(f.conds) == 0 {
			continue // All is no condition
		}
		found := Finding{Condition: one.shown}
		found.Met, found.Cut, found.Passes = f.meet(e)
		all = append(all, found)
	}
	return all, nil
}

// Failed gives the first finding that does not pass; nil: the event passes.
func Failed(findings []Finding) *Finding {
	for i := range findings {
		if !findings[i].Passes {
			return &findings[i]
		}
	}
	return nil
}

// Words is the finding in a few words, such as
//
//	data.kind StringIn ["smoke","co"], and it is "glass"
func (f *Finding) Words() string {
	c := f.Condition
	words := strings.TrimSpace(strings.Join([]string{c.Key, c.Operator, cmp.Or(string(c.Value), string(c.Values))}, " "))
	if f.Met == nil {
		return words + ", and the event has none"
	}
	return words + ", and it is " + string(f.Met)
}

// lone is one condition of a filter, alone, and how it is shown.
type lone struct {
	alone Config
	shown Condition
}

// apart takes a filter apart. Compile makes one condition of several that bound one number: each is
// judged by itself here.
func apart(cfg Config) []lone {
	var all []lone
	text := func(alone Config, operator, key string, values ...string) {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		all = append(all, lone{alone, Condition{Operator: operator, Key: key, Values: marshal(list)}})
	}
	if len(cfg.EventTypes) > 0 {
		text(Config{EventTypes: cfg.EventTypes}, "StringIn", "type", cfg.EventTypes...)
	}
	if cfg.DomainTopic != "" {
		text(Config{DomainTopic: cfg.DomainTopic}, "StringIn", "topic", cfg.DomainTopic)
	}
	if cfg.SubjectBeginsWith != "" {
		text(Config{SubjectBeginsWith: cfg.SubjectBeginsWith, SubjectCaseSensitive: cfg.SubjectCaseSensitive}, "StringBeginsWith", "subject", cfg.SubjectBeginsWith)
	}
	if cfg.SubjectEndsWith != "" {
		text(Config{SubjectEndsWith: cfg.SubjectEndsWith, SubjectCaseSensitive: cfg.SubjectCaseSensitive}, "StringEndsWith", "subject", cfg.SubjectEndsWith)
	}
	for _, c := range cfg.Advanced {
		if op := findOperator(c.Operator); op != nil {
			c.Operator = op.name
		}
		all = append(all, lone{Config{Arrays: cfg.Arrays, Advanced: []Condition{c}}, c})
	}
	return all
}

// meet is what the only condition of a filter meets in an event.
func (f *Filter) meet(e *schema.Envelope) (met json.RawMessage, cut, passes bool) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.load(f.layout, e)
	defer s.release()
	c := &f.conds[0]
	met, cut = s.values[c.slot].show()
	return met, cut, s.holds(c)
}

// show gives a value as JSON that outlives the event; nil: there is none.
func (v *value) show() (text json.RawMessage, cut bool) {
	switch {
	case v.kind == missing:
		return nil, false
	case len(v.text) > maxMet:
		return marshalText(strings.ToValidUTF8(string(v.text[:maxMet]), "") + "…"), true
	case v.kind == str && v.escaped:
		return json.RawMessage(`"` + string(v.text) + `"`), false
	case v.kind == str || !json.Valid(v.text):
		return marshalText(string(v.text)), false
	}
	return json.RawMessage(string(v.text)), false
}

func marshalText(text string) json.RawMessage {
	list := marshal([]any{text})
	return list[1 : len(list)-1]
}
