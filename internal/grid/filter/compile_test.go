package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G10: what is not allowed is refused, with words that help.
func TestCompileRefuses(t *testing.T) {
	many := func(n int) []Condition {
		list := make([]Condition, n)
		for i := range list {
			list[i] = condition("NumberIn", "data.k", "[1]")
		}
		return list
	}
	raw := func(operator, key, value, values string) []Condition {
		return []Condition{{Operator: operator, Key: key, Value: json.RawMessage(value), Values: json.RawMessage(values)}}
	}
	for _, tt := range []struct {
		what     string
		advanced []Condition
		says     []string
	}{
		{"a misspelt operator", raw("NumberGreaterTan", "data.total", "5", ""), []string{`"NumberGreaterTan"`, "did you mean NumberGreaterThan?", `{"operatorType":"NumberGreaterThan","key":"data.total","value":5}`}},
		{"one of another system", raw("startsWith", "data.path", "", `["a"]`), []string{"did you mean StringBeginsWith?", `"values":["red","blue"]`}},
		{"one nobody knows", raw("Frobnicate", "data.k", "1", ""), []string{"there are NumberIn, NumberNotIn,"}},
		{"none", raw("", "data.k", "1", ""), []string{"names no operatorType"}},
		{"no key", raw("NumberIn", "", "", "[1]"), []string{"it has no key", `"key":"data.total"`}},
		{"an empty part of a key", raw("NumberIn", "data..k", "", "[1]"), []string{"empty part"}},
		{"a key that leads too deep", raw("NumberIn", "data"+strings.Repeat(".k", 32), "", "[1]"), []string{"33 parts, at most 32"}},
		{"a key outside of data", raw("NumberIn", "order.total", "", "[1]"), []string{`did you mean "data.order.total"?`}},
		{"a value missing", raw("NumberLessThan", "data.k", "", ""), []string{`needs a "value"`, `"value":5`}},
		{"null is missing", raw("NumberLessThan", "data.k", "null", ""), []string{`needs a "value"`}},
		{"values missing", raw("StringIn", "data.k", "", ""), []string{`needs "values"`}},
		{"values for value", raw("NumberLessThan", "data.k", "", "[5]"), []string{`in "value"`, `"value":5`}},
		{"value for values", raw("StringIn", "data.k", `"a"`, ""), []string{`takes a list, in "values"`}},
		{"no list", raw("StringIn", "data.k", "", `"a"`), []string{"takes a list of texts"}},
		{"an empty list", raw("StringIn", "data.k", "", `[]`), []string{"at least one value"}},
		{"numbers for texts", raw("StringIn", "data.k", "", `[5]`), []string{"takes texts", "into quotes"}},
		{"texts for numbers", raw("NumberIn", "data.k", "", `["5"]`), []string{"takes numbers", "leave out the quotes"}},
		{"a text for a number", raw("NumberGreaterThan", "data.k", `"5"`, ""), []string{"takes a number", "leave out the quotes"}},
		{"what is no JSON", raw("NumberGreaterThan", "data.k", `007`, ""), []string{"007 is none"}},
		{"a text for a boolean", raw("BoolEquals", "data.k", `"true"`, ""), []string{"true or false", "leave out the quotes"}},
		{"a flat range", raw("NumberInRange", "data.k", "", `[10,20]`), []string{"[low, high]", `"values":[[10,20],[30,40]]`}},
		{"a range of three", raw("NumberInRange", "data.k", "", `[[1,2,3]]`), []string{"[low, high]"}},
		{"a range of texts", raw("NumberInRange", "data.k", "", `[["1","2"]]`), []string{"ends of a range are numbers"}},
		{"a range upside down", raw("NumberInRange", "data.k", "", `[[2,1]]`), []string{"lower number first"}},
		{"a value for none", raw("IsNotNull", "data.k", "true", ""), []string{"takes no value"}},
		{"a text too long", raw("StringIn", "data.k", "", `["`+strings.Repeat("é", 513)+`"]`), []string{"513 characters, at most 512"}},
		{"too many filters", many(26), []string{"26 advanced filters, at most 25"}},
		{"too many values", append(many(20), raw("NumberIn", "data.k", "", "[1,2,3,4,5,6]")...), []string{"26 values together, at most 25"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			_, err := Compile(Config{Advanced: tt.advanced})
			testkit.MustErrorIs(t, err, ErrInvalid)
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("it says nothing of %q: %v", says, err)
				}
			}
		})
	}
	if _, err := Compile(Config{EventTypes: []string{"a", ""}}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "number 2 is empty") {
		t.Errorf("an empty type: got %v", err)
	}
}

// The examples that errors show are right ones.
func TestExamplesAreAllowed(t *testing.T) {
	for i := range operators {
		p := &problem{what: "x", op: &operators[i]}
		for _, key := range []string{"", "data.mine", "Subject"} {
			_, example, _ := strings.Cut(p.withJSON(key), "for example ")
			var c Condition
			testkit.Must(t, json.Unmarshal([]byte(example), &c), "%s", example)
			mustCompile(t, Config{Advanced: []Condition{c}})
			_, example, _ = strings.Cut(p.withText(key), "for example ")
			testkit.Check(t, testkit.Err(ParseCondition(strings.Trim(example, "'"))))
		}
	}
}

// G10: the limits themselves are allowed.
func TestCompileAllows(t *testing.T) {
	for _, tt := range []struct {
		what     string
		advanced []Condition
	}{
		{"a text of 512 characters", []Condition{condition("StringIn", "data.k", `["`+strings.Repeat("é", 512)+`"]`)}},
		{"25 values", []Condition{condition("NumberIn", "data.k", "["+strings.Repeat("1,", 24)+"1]")}},
		{"25 ranges", []Condition{condition("NumberInRange", "data.k", "["+strings.Repeat("[1,2],", 24)+"[1,2]]")}},
		{"a key of 32 parts", []Condition{{Operator: "IsNotNull", Key: "data" + strings.Repeat(".k", 31)}}},
		{"an operator in any case", []Condition{{Operator: "isNOTnull", Key: "data.k"}}},
		{"null for a member that is not needed", []Condition{{Operator: "NumberIn", Key: "data.k", Value: json.RawMessage("null"), Values: json.RawMessage(" [1]")}}},
		{"conditions that exclude each other", []Condition{condition("NumberIn", "data.k", "[1]"), condition("NumberIn", "data.k", "[2]"), condition("NumberIn", "data.k", "[1]")}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			f := mustCompile(t, Config{Advanced: tt.advanced})
			f.Match(gridEvent(`{"k":1}`))
		})
	}
	var most []Condition
	for i := range 25 {
		most = append(most, condition("BoolEquals", fmt.Sprintf("data.k%d", i), "true"))
	}
	mustCompile(t, Config{Advanced: most})
}

// The management shape reads as Event Grid has it.
func TestConfigReadsEventGridsShape(t *testing.T) {
	var cfg Config
	text := `{"subjectBeginsWith":"/a","subjectEndsWith":"","isSubjectCaseSensitive":true,"includedEventTypes":null,"enableAdvancedFilteringOnArrays":true,
		"advancedFilters":[{"operatorType":"NumberInRange","key":"data.total","values":[[10,20]]},{"operatorType":"BoolEquals","key":"data.on","value":true}]}`
	testkit.Must(t, json.Unmarshal([]byte(text), &cfg))
	e := gridEvent(`{"total":[9,10],"on":true}`)
	e.Subject = []byte("/ab")
	if !mustCompile(t, cfg).Match(e) {
		t.Error("does not match")
	}
}
