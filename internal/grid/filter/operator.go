package filter

import (
	"slices"
	"strings"
)

// operand is what an operator is compared with.
type operand byte

const (
	nothing operand = iota
	oneBool
	oneNumber
	numbers
	ranges
	strs
)

// operator is a row of the table in reference §8.2.
type operator struct {
	name     string
	takes    operand
	test     test
	negative bool
	// missing is the answer where the event has no value for the key.
	missing bool
	// span is what one number stands for, with operators that compare numbers.
	span func(num) span
}

var operators = []operator{
	{name: "NumberIn", takes: numbers, test: testSpans, span: exactly},
	{name: "NumberNotIn", takes: numbers, test: testSpans, span: exactly, negative: true, missing: true},
	{name: "NumberLessThan", takes: oneNumber, test: testSpans, span: below},
	{name: "NumberGreaterThan", takes: oneNumber, test: testSpans, span: above},
	{name: "NumberLessThanOrEquals", takes: oneNumber, test: testSpans, span: atMost},
	{name: "NumberGreaterThanOrEquals", takes: oneNumber, test: testSpans, span: atLeast},
	{name: "NumberInRange", takes: ranges, test: testSpans},
	{name: "NumberNotInRange", takes: ranges, test: testSpans, negative: true, missing: true},
	{name: "BoolEquals", takes: oneBool, test: testBool},
	{name: "StringIn", takes: strs, test: testEqual},
	{name: "StringNotIn", takes: strs, test: testEqual, negative: true, missing: true},
	{name: "StringBeginsWith", takes: strs, test: testBegins},
	{name: "StringNotBeginsWith", takes: strs, test: testBegins, negative: true},
	{name: "StringEndsWith", takes: strs, test: testEnds},
	{name: "StringNotEndsWith", takes: strs, test: testEnds, negative: true},
	{name: "StringContains", takes: strs, test: testContains},
	{name: "StringNotContains", takes: strs, test: testContains, negative: true},
	{name: "IsNullOrUndefined", takes: nothing, test: testPresent, negative: true, missing: true},
	{name: "IsNotNull", takes: nothing, test: testPresent},
}

// hunches are what people write who know other systems.
var hunches = map[string]string{
	"=": "StringIn", "==": "StringIn", "eq": "StringIn", "equals": "StringIn", "is": "StringIn", "in": "StringIn",
	"stringequals": "StringIn", "stringnotequals": "StringNotIn", "!=": "StringNotIn", "ne": "StringNotIn",
	"notin": "StringNotIn", "numberequals": "NumberIn", "numbernotequals": "NumberNotIn",
	">": "NumberGreaterThan", "gt": "NumberGreaterThan", ">=": "NumberGreaterThanOrEquals", "ge": "NumberGreaterThanOrEquals",
	"<": "NumberLessThan", "lt": "NumberLessThan", "<=": "NumberLessThanOrEquals", "le": "NumberLessThanOrEquals",
	"between": "NumberInRange", "range": "NumberInRange", "bool": "BoolEquals", "prefix": "StringBeginsWith",
	"startswith": "StringBeginsWith", "stringstartswith": "StringBeginsWith", "beginswith": "StringBeginsWith",
	"suffix": "StringEndsWith", "endswith": "StringEndsWith", "contains": "StringContains", "like": "StringContains",
	"isnull": "IsNullOrUndefined", "isundefined": "IsNullOrUndefined", "exists": "IsNotNull",
}

// findOperator knows operators in any case.
func findOperator(name string) *operator {
	i := slices.IndexFunc(operators, func(o operator) bool { return strings.EqualFold(o.name, name) })
	if i < 0 {
		return nil
	}
	return &operators[i]
}

// nearestOperator guesses what was meant by a name; nil if there is no telling.
func nearestOperator(name string) *operator {
	name = strings.ToLower(strings.TrimSpace(name))
	if meant, ok := hunches[name]; ok {
		return findOperator(meant)
	}
	if name == "" || len(name) > 60 {
		return nil
	}
	nearest := slices.MinFunc(operators, func(a, b operator) int {
		return distance(name, strings.ToLower(a.name)) - distance(name, strings.ToLower(b.name))
	})
	if distance(name, strings.ToLower(nearest.name)) > len(nearest.name)/2 {
		return nil
	}
	return findOperator(nearest.name)
}

// distance is how many bytes have to be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func operatorNames() string {
	names := make([]string, len(operators))
	for i, o := range operators {
		names[i] = o.name
	}
	return strings.Join(names, ", ")
}
