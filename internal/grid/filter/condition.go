package filter

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// compileCondition checks one advanced filter. The condition has no slot yet.
func compileCondition(c Condition) (cond, key, *problem) {
	op := findOperator(c.Operator)
	if op == nil {
		return cond{}, key{}, unknownOperator(c.Operator)
	}
	k, problem := parseKey(c.Key)
	if problem != nil {
		problem.op = op
		return cond{}, key{}, problem
	}
	compiled := cond{test: op.test, negative: op.negative, missing: op.missing}
	if problem := compiled.setOperand(op, c); problem != nil {
		return cond{}, key{}, problem
	}
	return compiled, k, nil
}

func unknownOperator(name string) *problem {
	if name == "" {
		return wrong(nil, "it names no operatorType; there are %s", operatorNames())
	}
	if near := nearestOperator(name); near != nil {
		return wrong(near, "there is no operator %.60q; did you mean %s?", name, near.name)
	}
	return wrong(nil, "there is no operator %.60q; there are %s", name, operatorNames())
}

// setOperand reads what the operator compares with.
func (c *cond) setOperand(op *operator, from Condition) *problem {
	value, values := given(from.Value), given(from.Values)
	switch op.takes {
	case nothing:
		if value != nil || values != nil {
			return wrong(op, "%s takes no value; leave it out", op.name)
		}
		return nil
	case oneBool, oneNumber:
		if values != nil {
			return wrong(op, `%s takes one value, in "value"; "values" is for operators that take several`, op.name)
		}
		if value == nil {
			return wrong(op, `%s needs a "value"`, op.name)
		}
		return c.addValue(op, value)
	}
	if value != nil {
		return wrong(op, `%s takes a list, in "values", not "value"`, op.name)
	}
	if values == nil {
		return wrong(op, `%s needs "values"`, op.name)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(values, &list); err != nil {
		return wrong(op, "%s takes a list of %s, and %.60q is none", op.name, op.takes, values)
	}
	if len(list) == 0 {
		return wrong(op, "%s needs at least one value: an empty list would never change its answer", op.name)
	}
	for _, value := range list {
		if problem := c.addValue(op, bytes.TrimSpace(value)); problem != nil {
			return problem
		}
	}
	c.gather()
	return nil
}

// given is raw JSON that says something; null is as good as left out.
func given(raw json.RawMessage) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// addValue reads one operand: of a list, or the only one.
func (c *cond) addValue(op *operator, raw []byte) *problem {
	switch op.takes {
	case oneBool:
		if c.yes = string(raw) == "true"; !c.yes && string(raw) != "false" {
			return wrong(op, "%s takes true or false, and %.60s is neither%s", op.name, raw, unquoteHint(raw))
		}
		return nil
	case strs:
		return c.addText(op, raw)
	case ranges:
		return c.addRange(op, raw)
	}
	n, ok := operandNumber(raw)
	if !ok {
		return wrong(op, "%s takes %s, and %.60s is none%s", op.name, op.takes, raw, unquoteHint(raw))
	}
	c.spans = append(c.spans, op.span(n))
	return nil
}

func (c *cond) addText(op *operator, raw []byte) *problem {
	var text string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return wrong(op, `%s takes texts, and %.60s is none; put it into quotes`, op.name, raw)
	}
	if n := utf8.RuneCountInString(text); n > MaxValueLength {
		return wrong(op, "a value of %s has %d characters, at most %d are allowed", op.name, n, MaxValueLength)
	}
	c.texts = append(c.texts, newText(text))
	return nil
}

func (c *cond) addRange(op *operator, raw []byte) *problem {
	var ends []json.RawMessage
	if json.Unmarshal(raw, &ends) != nil || len(ends) != 2 {
		return wrong(op, "%s takes ranges of two numbers, [low, high], and %.60s is none", op.name, raw)
	}
	low, lowOK := operandNumber(bytes.TrimSpace(ends[0]))
	high, highOK := operandNumber(bytes.TrimSpace(ends[1]))
	if !lowOK || !highOK {
		return wrong(op, "the ends of a range are numbers, and those of %.60s are not%s", raw, unquoteHint(ends[0]))
	}
	if high.compare(low) < 0 {
		return wrong(op, "the range %.60s ends before it begins; write the lower number first", raw)
	}
	c.spans = append(c.spans, between(low, high))
	return nil
}

// operandNumber reads a number that must be JSON's, also where no decoder looked at it.
func operandNumber(raw []byte) (num, bool) {
	if !json.Valid(raw) {
		return num{}, false
	}
	return parseNum(raw)
}

func unquoteHint(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return "; leave out the quotes"
	}
	return ""
}

func (o operand) String() string {
	switch o {
	case oneNumber:
		return "a number"
	case ranges:
		return "ranges"
	case strs:
		return "texts"
	}
	return "numbers"
}
