package invoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// whole is what is said of all events.
func (r *reading) whole(s statement) (Result, error) {
	if s.accuses() {
		return r.result(Failed, s.complaint(), s.RetryAfter)
	}
	// What people answer who do not speak of events: {"status":200}, {"status":true}.
	n, err := strconv.Atoi(string(s.Status))
	if absent(s.Status) || err == nil && n >= 200 && n < 300 || string(s.Status) == "true" {
		return Result{}, nil
	}
	v, err := parseStatus(s.Status)
	if err != nil {
		return Result{}, err
	}
	if v == Untouched {
		return Result{}, errors.New(`the status of a whole batch cannot be "untouched": use retry`)
	}
	return r.result(v, s.complaint(), s.RetryAfter)
}

// result is a verdict with its circumstances.
func (r *reading) result(v Verdict, text string, after json.RawMessage) (Result, error) {
	wait, err := parseWait(after)
	if err != nil || v == Done || v == Untouched {
		return Result{Verdict: v}, err
	}
	if absent(after) {
		wait = r.asked
	}
	if text == "" {
		text = "the function said " + saying[v] + ", and gave no error"
	}
	return r.later(Result{Verdict: v, Error: text}, wait), nil
}

var saying = map[Verdict]string{Failed: `"failed"`, Poison: `"poison"`, Skip: `"skip"`}

// verdict puts together what is said of single events and, of the rest, whole.
func (r *reading) verdict(s statement, whole Result) (Answer, error) {
	if !s.itemized() {
		return Answer{Result: whole}, nil
	}
	each := map[int]Result{}
	if err := r.addResults(each, s.Results); err != nil {
		return Answer{}, err
	}
	if err := r.addFailures(each, s.Failures); err != nil {
		return Answer{}, err
	}
	touched := len(each) < len(r.call.Events)
	for _, result := range each {
		touched = touched || result.Verdict != Untouched
	}
	if !touched {
		return Answer{}, errors.New(`every event is "untouched", which would go on for ever: use retry`)
	}
	if len(each) == 0 {
		return Answer{Result: whole}, nil
	}
	for i := range r.call.Events {
		result, ok := each[i]
		switch {
		case !ok && whole.Verdict != Done:
			each[i] = whole
		case ok && result.Verdict == Done:
			delete(each, i)
		}
	}
	if len(each) == 0 {
		each = nil
	}
	return Answer{Each: each}, nil
}

func (r *reading) addResults(each map[int]Result, raw json.RawMessage) error {
	items, err := parseItems("results", raw)
	if err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		position, err := r.position(it)
		if err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		v, err := parseStatus(it.Status)
		if err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
		result, err := r.result(v, errorText(it.Error), it.RetryAfter)
		if err == nil {
			err = put(each, position, result)
		}
		if err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	return nil
}

// addFailures reads the answer of a function written for AWS Lambda. An identifier that is not
// known, or empty, fails the whole batch there, too.
func (r *reading) addFailures(each map[int]Result, raw json.RawMessage) error {
	items, err := parseItems("batchItemFailures", raw)
	if err != nil {
		return err
	}
	for i := range items {
		position, err := r.identified(items[i].Identifier)
		if err != nil {
			return fmt.Errorf("failure %d: %w", i, err)
		}
		result, err := r.result(Failed, errorText(items[i].Error), items[i].RetryAfter)
		if err == nil {
			err = put(each, position, result)
		}
		if err != nil {
			return fmt.Errorf("failure %d: %w", i, err)
		}
	}
	return nil
}

func parseItems(name string, raw json.RawMessage) (items []item, err error) {
	if absent(raw) {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("%q has to be an array of objects", name)
	}
	return items, nil
}

// put adds a result. An event may be named twice, by the same verdict.
func put(each map[int]Result, position int, result Result) error {
	if before, ok := each[position]; ok {
		if before.Verdict != result.Verdict {
			return errors.New("it is about an event that another result is about, too, with another status")
		}
		return nil
	}
	each[position] = result
	return nil
}
