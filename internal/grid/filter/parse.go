package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Operators are the names of all that there are, in a sentence.
func Operators() string { return operatorNames() }

// ParseCondition reads a filter as the command line has it: 'data.k NumberGreaterThan 5',
// 'data.color StringIn red,blue' or JSON values ('data.color StringIn ["a, b","c"]'),
// 'data.total NumberInRange 10-20,30-40' or [[10,20]], 'data.on BoolEquals true',
// 'data.x IsNotNull'. Operators in any case. The error says what is wrong and shows a right one.
func ParseCondition(text string) (Condition, error) {
	key, rest := cutWord(text)
	name, values := cutWord(rest)
	condition, problem := parseCondition(key, name, values)
	if problem != nil {
		return Condition{}, fmt.Errorf("%w: %.120q: %s", ErrInvalid, strings.TrimSpace(text), problem.withText(key))
	}
	return condition, nil
}

// Meant tells whether a text that is no condition was meant to be one: it begins with what events have, and goes on
// with an operator or with what looks like one. data.total, whatever is behind it, is nothing that people look for.
func Meant(text string) bool {
	key, rest := cutWord(text)
	name, _ := cutWord(rest)
	if name == "" {
		return false
	}
	key = strings.ToLower(key)
	if data, ok := strings.CutPrefix(key, "data."); ok && data != "" {
		return true
	}
	_, _, known := schema.FindAttribute(key)
	return findOperator(name) != nil || known && likeOperator(strings.ToLower(name))
}

// likeOperator tells whether a word, in lower case, is one that somebody may take for an operator.
func likeOperator(word string) bool {
	for _, family := range []string{"string", "number", "bool", "isnull", "isnot", "isundefined"} {
		if strings.HasPrefix(word, family) {
			return true
		}
	}
	return strings.Trim(word, "=<>!~") == "" || slices.Contains([]string{"eq", "ne", "gt", "ge", "lt", "le", "in", "like", "equals", "contains"}, word)
}

func parseCondition(key, name, values string) (Condition, *problem) {
	switch {
	case key == "":
		return Condition{}, wrong(nil, "it is empty: a filter is a key, an operator and its values")
	case findOperator(key) != nil:
		return Condition{}, wrong(findOperator(key), "the key comes first, then the operator")
	case name == "":
		return Condition{}, wrong(nil, "it names no operator after the key; there are %s", operatorNames())
	}
	op := findOperator(name)
	if op == nil {
		return Condition{}, unknownOperator(name)
	}
	condition := Condition{Operator: op.name, Key: key}
	raw, problem := op.readOperand(values)
	if problem != nil {
		return Condition{}, problem
	}
	if op.takes == oneBool || op.takes == oneNumber {
		condition.Value = raw
	} else {
		condition.Values = raw
	}
	_, _, problem = compileCondition(condition)
	return condition, problem
}

// cutWord cuts off the first word.
func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	i := strings.IndexFunc(text, unicode.IsSpace)
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimSpace(text[i:])
}

// readOperand makes JSON of what is written behind an operator. What the JSON means is
// looked at later.
func (o *operator) readOperand(text string) (json.RawMessage, *problem) {
	switch {
	case o.takes == nothing:
		if text != "" {
			return nil, wrong(o, "%s takes no value, and there is %.60q behind it", o.name, text)
		}
		return nil, nil
	case text == "":
		return nil, wrong(o, "%s needs something to compare with", o.name)
	case o.takes == oneBool:
		return json.RawMessage(strings.ToLower(text)), nil
	case o.takes == oneNumber:
		return json.RawMessage(text), nil
	case text[0] != '[' && text[0] != '"':
		return o.readList(strings.Split(text, ","))
	}
	if text[0] == '"' {
		text = "[" + text + "]"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, wrong(o, `values that begin with [ or " are read as JSON, and %.60q is none (%v)`, text, err)
	}
	return compact.Bytes(), nil
}

// readList reads values with commas in between.
func (o *operator) readList(items []string) (json.RawMessage, *problem) {
	list := make([]any, len(items))
	for i, item := range items {
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, wrong(o, "there is nothing between two commas, or behind the last one")
		}
		value, problem := o.readItem(item)
		if problem != nil {
			return nil, problem
		}
		list[i] = value
	}
	return marshal(list), nil
}

// rangeText is two numbers with a hyphen in between, either of which may be negative.
var rangeText = regexp.MustCompile(`^(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*-\s*(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)$`)

func (o *operator) readItem(item string) (any, *problem) {
	switch o.takes {
	case ranges:
		ends := rangeText.FindStringSubmatch(item)
		if ends == nil || !isNumber(ends[1]) || !isNumber(ends[2]) {
			return nil, wrong(o, "%.60q is no range: that is two numbers with a hyphen in between", item)
		}
		return []json.Number{json.Number(ends[1]), json.Number(ends[2])}, nil
	case numbers:
		if !isNumber(item) {
			return nil, wrong(o, "%s takes numbers, and %.60q is none", o.name, item)
		}
		return json.Number(item), nil
	}
	// Elsewhere values are separated by spaces, so that to take this for one value would
	// make a filter that never matches of what someone is used to write.
	if strings.ContainsFunc(item, unicode.IsSpace) {
		return nil, wrong(o, `the value %.60q has a space in it: put commas between values, and write values with spaces as JSON, ["a b","c"]`, item)
	}
	return item, nil
}

func isNumber(text string) bool {
	_, ok := operandNumber([]byte(text))
	return ok
}

// marshal writes JSON that people may read: <, > and & as they are.
func marshal(list []any) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		panic(err) // strings and checked numbers only
	}
	return bytes.TrimSpace(out.Bytes())
}
