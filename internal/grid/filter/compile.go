package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Compile checks a filter (names, operands, limits of reference §8) and makes it ready. Errors
// wrap ErrInvalid, name the operator and key, and say what to write instead.
func Compile(cfg Config) (*Filter, error) {
	f := &Filter{}
	if err := f.addTypes(cfg.EventTypes); err != nil {
		return nil, err
	}
	if cfg.DomainTopic != "" {
		c := cond{slot: f.slot(key{name: schema.DomainTopicKey}), test: testEqual, texts: []text{newText(cfg.DomainTopic)}}
		c.gather()
		f.conds = append(f.conds, c)
	}
	begins, ends := testBegins, testEnds
	if cfg.SubjectCaseSensitive {
		begins, ends = testBeginsExactly, testEndsExactly
	}
	for _, part := range []struct {
		test test
		text string
	}{{begins, cfg.SubjectBeginsWith}, {ends, cfg.SubjectEndsWith}} {
		if part.text != "" {
			slot := f.slot(key{name: "subject"})
			f.conds = append(f.conds, cond{slot: slot, test: part.test, texts: []text{newText(part.text)}})
		}
	}
	if err := f.addAdvanced(cfg); err != nil {
		return nil, err
	}
	f.conds = mergeSpans(f.conds)
	f.layout = newLayout(f.keys)
	return f, nil
}

// addTypes makes a condition of includedEventTypes: it is a StringIn on the type.
func (f *Filter) addTypes(types []string) error {
	if len(types) == 0 || len(types) == 1 && strings.EqualFold(types[0], "All") {
		return nil
	}
	c := cond{slot: f.slot(key{name: "type"}), test: testEqual}
	for i, t := range types {
		if t == "" {
			return fmt.Errorf(`%w: includedEventTypes: number %d is empty; remove it, or write ["All"] alone for every type`, ErrInvalid, i+1)
		}
		c.texts = append(c.texts, newText(t))
	}
	c.gather()
	f.conds = append(f.conds, c)
	return nil
}

func (f *Filter) addAdvanced(cfg Config) error {
	if n := len(cfg.Advanced); n > MaxConditions {
		return fmt.Errorf("%w: it has %d advanced filters, at most %d are allowed; put values of one key into one filter, or make a second subscription", ErrInvalid, n, MaxConditions)
	}
	values := 0
	for i, condition := range cfg.Advanced {
		c, k, problem := compileCondition(condition)
		if problem != nil {
			return fmt.Errorf("%w: advancedFilters: number %d (%.60q on %.60q): %s", ErrInvalid, i+1, condition.Operator, condition.Key, problem.withJSON(condition.Key))
		}
		c.slot, c.arrays = f.slot(k), cfg.Arrays
		f.conds = append(f.conds, c)
		if values += len(c.spans) + len(c.texts); c.test == testBool {
			values++
		}
	}
	if values > MaxValues {
		return fmt.Errorf("%w: its advanced filters have %d values together, at most %d are allowed; drop some, or make a second subscription for the others", ErrInvalid, values, MaxValues)
	}
	return nil
}

// mergeSpans makes one condition of several that bound one number, such as above 5 and below
// 10, so that an index finds it by both. For arrays that would be wrong: there, each
// condition may be met by another element.
func mergeSpans(conds []cond) []cond {
	var merged []cond
	for _, c := range conds {
		same := -1
		if c.bounds() {
			same = slices.IndexFunc(merged, func(other cond) bool { return other.bounds() && other.slot == c.slot })
		}
		if same < 0 {
			merged = append(merged, c)
		} else {
			merged[same].spans = intersect(merged[same].spans[0], c.spans[0])
		}
	}
	return merged
}

// bounds says whether a condition is a single span that a single number has to be in.
func (c *cond) bounds() bool {
	return c.test == testSpans && !c.negative && !c.arrays && len(c.spans) == 1
}
