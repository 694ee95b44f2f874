package filter

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G10: filters on the command line.
func TestParseCondition(t *testing.T) {
	for _, tt := range []struct{ text, operator, key, value, values string }{
		{"data.k NumberGreaterThan 5", "NumberGreaterThan", "data.k", "5", ""},
		{"  data.k\tnumberGREATERthan   -5e3 ", "NumberGreaterThan", "data.k", "-5e3", ""},
		{"data.color StringIn red,blue", "StringIn", "data.color", "", `["red","blue"]`},
		{"data.color StringIn red, blue", "StringIn", "data.color", "", `["red","blue"]`},
		{`data.color StringIn ["a, b", "c"]`, "StringIn", "data.color", "", `["a, b","c"]`},
		{`data.color StringIn "a, b","c"`, "StringIn", "data.color", "", `["a, b","c"]`},
		{`data.color StringContains <b>&`, "StringContains", "data.color", "", `["<b>&"]`},
		{"data.n StringIn 5", "StringIn", "data.n", "", `["5"]`},
		{"data.n NumberIn 1,2.5,-3", "NumberIn", "data.n", "", `[1,2.5,-3]`},
		{"data.n NumberIn [1, 2]", "NumberIn", "data.n", "", `[1,2]`},
		{"data.total NumberInRange 10-20,30-40", "NumberInRange", "data.total", "", `[[10,20],[30,40]]`},
		{"data.total NumberInRange -20--10, -1 - 1.5, 1e-3-2e-3", "NumberInRange", "data.total", "", `[[-20,-10],[-1,1.5],[1e-3,2e-3]]`},
		{"data.total NumberNotInRange [[10,20]]", "NumberNotInRange", "data.total", "", `[[10,20]]`},
		{"data.on BoolEquals TRUE", "BoolEquals", "data.on", "true", ""},
		{"data.x IsNotNull", "IsNotNull", "data.x", "", ""},
		{"subject isnullorundefined", "IsNullOrUndefined", "subject", "", ""},
	} {
		t.Run(tt.text, func(t *testing.T) {
			c := testkit.Value(ParseCondition(tt.text))(t)
			if c.Operator != tt.operator || c.Key != tt.key || string(c.Value) != tt.value || string(c.Values) != tt.values {
				t.Errorf("got %+v", c)
			}
			mustCompile(t, Config{Advanced: []Condition{c}})
		})
	}
}

func TestParseConditionRefuses(t *testing.T) {
	for _, tt := range []struct {
		text string
		says []string
	}{
		{"", []string{"it is empty", "'data.color StringIn red,blue'"}},
		{"data.k", []string{"names no operator", "'data.k StringIn red,blue'"}},
		{"NumberIn data.k 5", []string{"the key comes first", "'data.total NumberIn 1,2.5'"}},
		{"data.k NumberGreaterTan 5", []string{"did you mean NumberGreaterThan?", "'data.k NumberGreaterThan 5'"}},
		{"data.k > 5", []string{"did you mean NumberGreaterThan?"}},
		{"data.k NumberGreaterThan", []string{"needs something to compare with"}},
		{"data.k NumberGreaterThan five", []string{"five is none"}},
		{"data.k NumberGreaterThan 5,6", []string{"5,6 is none"}},
		{"data.k NumberIn .5", []string{`".5" is none`}},
		{"data.k NumberIn 1,,2", []string{"between two commas"}},
		{"data.k StringIn red blue", []string{"has a space in it", `["a b","c"]`}},
		{"data.k StringIn [red]", []string{"read as JSON"}},
		{`data.k StringIn "red`, []string{"read as JSON"}},
		{"data.k NumberInRange 10..20", []string{"is no range", "'data.k NumberInRange 10-20,30-40'"}},
		{"data.k NumberInRange 20-10", []string{"lower number first"}},
		{"data.k NumberInRange 1.-2", []string{"is no range"}},
		{"data.k BoolEquals yes", []string{"true or false"}},
		{"data.k IsNotNull 5", []string{"takes no value"}},
		{"k.l IsNotNull", []string{`did you mean "data.k.l"?`}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, err := ParseCondition(tt.text)
			testkit.MustErrorIs(t, err, ErrInvalid)
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("it says nothing of %q: %v", says, err)
				}
			}
		})
	}
}

// Each operator is the nearest to itself with a letter less or more.
func TestNearestOperator(t *testing.T) {
	for _, o := range operators {
		for _, name := range []string{o.name[1:], o.name[:len(o.name)-1], o.name + "s", strings.ToUpper(o.name) + "!"} {
			if near := nearestOperator(name); near == nil || near.name != o.name {
				t.Errorf("%s is near %v", name, near)
			}
		}
	}
	for name, meant := range hunches {
		if findOperator(meant) == nil {
			t.Errorf("%s: there is no %s", name, meant)
		}
	}
}
