package filter

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

func gridEvent(data string) *schema.Envelope {
	e := &schema.Envelope{Form: schema.EventGridForm, ID: []byte("1"), Subject: []byte("/Blobs/cat.JPG"), Type: []byte("Blob.Created"),
		Time: []byte("2026-01-02T03:04:05Z"), Topic: "/topics/Blobs"}
	if data != "" {
		e.Data = []byte(data)
	}
	return e
}

// G10: event types in any case, all of them by default.
func TestEventTypes(t *testing.T) {
	for _, tt := range []struct {
		what  string
		types []string
		want  bool
	}{
		{"none given takes all", nil, true},
		{"an empty list takes all", []string{}, true},
		{"All takes all", []string{"All"}, true},
		{"in any case", []string{"all"}, true},
		{"All among others is a type", []string{"All", "Other"}, false},
		{"the type", []string{"Blob.Created"}, true},
		{"in any case", []string{"BLOB.created"}, true},
		{"one of several", []string{"Other", "Blob.Created"}, true},
		{"one of very many", append(strings.Split(strings.Repeat("x ", 300), " ")[:300], "blob.created"), true},
		{"none of very many", append(strings.Split(strings.Repeat("x ", 300), " ")[:300], "blob.deleted"), false},
		{"another", []string{"Blob.Deleted"}, false},
		{"a beginning is not enough", []string{"Blob"}, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			f := mustCompile(t, Config{EventTypes: tt.types})
			testkit.Equal(t, f.Match(gridEvent("")), tt.want)
			testkit.Equal(t, len(NewIndex([]*Filter{f}).Matcher().Match(gridEvent(""), nil)) == 1, tt.want, "the index")
		})
	}
}

// G10: subject prefix and suffix, with the case option.
func TestSubject(t *testing.T) {
	for _, tt := range []struct {
		what         string
		begins, ends string
		sensitive    bool
		want         bool
	}{
		{"nothing given takes all", "", "", false, true},
		{"a prefix", "/Blobs/", "", false, true},
		{"in any case", "/bLOBS/", "", false, true},
		{"a suffix", "", ".JPG", false, true},
		{"in any case", "", ".jpg", false, true},
		{"both", "/blobs", ".jpg", false, true},
		{"both may overlap", "/blobs/cat.jpg", "cat.jpg", false, true},
		{"one of both is not enough", "/blobs", ".png", false, false},
		{"another prefix", "/files/", "", false, false},
		{"a part in the middle", "Blobs", "", false, false},
		{"longer than the subject", "/Blobs/cat.JPGs", "", false, false},
		{"with case, as it is", "/Blobs/", ".JPG", true, true},
		{"with case, another prefix", "/blobs/", "", true, false},
		{"with case, another suffix", "", ".jpg", true, false},
		{"no wildcards", "/*/", "", false, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			f := mustCompile(t, Config{SubjectBeginsWith: tt.begins, SubjectEndsWith: tt.ends, SubjectCaseSensitive: tt.sensitive})
			testkit.Equal(t, f.Match(gridEvent("")), tt.want)
		})
	}
	t.Run("an event without a subject", func(t *testing.T) {
		bare := &schema.Envelope{Form: schema.CloudEventForm, ID: []byte("1"), Type: []byte("x"), Source: []byte("/s")}
		if mustCompile(t, Config{SubjectBeginsWith: "/"}).Match(bare) || !mustCompile(t, Config{}).Match(bare) {
			t.Error("a missing subject has no prefix")
		}
	})
}

// verdicts says what an operator makes of each kind of value, in this order: a value that it
// looks for, another of the same type, one of another type, null, no value at all.
type verdicts [5]bool

// G10: the table of operators, with missing keys, null and other types.
func TestOperators(t *testing.T) {
	const y, n = true, false
	tests := []struct {
		operator, operand string
		hit, other, alien string
		want              verdicts
	}{
		{"NumberIn", "[3,5]", "5", "4", `"5"`, verdicts{y, n, n, n, n}},
		{"NumberNotIn", "[3,5]", "5", "4", `"4"`, verdicts{n, y, n, y, y}},
		{"NumberLessThan", "5", "4.99", "5", `"4"`, verdicts{y, n, n, n, n}},
		{"NumberGreaterThan", "5", "5.01", "5", `"6"`, verdicts{y, n, n, n, n}},
		{"NumberLessThanOrEquals", "5", "5", "5.01", `true`, verdicts{y, n, n, n, n}},
		{"NumberGreaterThanOrEquals", "5", "5", "4.99", `{}`, verdicts{y, n, n, n, n}},
		{"NumberInRange", "[[1,2],[5,6]]", "6", "3", `"6"`, verdicts{y, n, n, n, n}},
		{"NumberNotInRange", "[[1,2],[5,6]]", "1", "6.1", `"9"`, verdicts{n, y, n, y, y}},
		{"BoolEquals", "true", "true", "false", `"true"`, verdicts{y, n, n, n, n}},
		{"BoolEquals", "false", "false", "true", `0`, verdicts{y, n, n, n, n}},
		{"StringIn", `["red","Blue"]`, `"bLUE"`, `"blues"`, `1`, verdicts{y, n, n, n, n}},
		{"StringNotIn", `["red","Blue"]`, `"bLUE"`, `"blues"`, `1`, verdicts{n, y, n, y, y}},
		{"StringBeginsWith", `["re","Bl"]`, `"bLUE"`, `"able"`, `1`, verdicts{y, n, n, n, n}},
		{"StringNotBeginsWith", `["re","Bl"]`, `"bLUE"`, `"able"`, `1`, verdicts{n, y, n, n, n}},
		{"StringEndsWith", `["ed","Ue"]`, `"bLUE"`, `"blues"`, `1`, verdicts{y, n, n, n, n}},
		{"StringNotEndsWith", `["ed","Ue"]`, `"bLUE"`, `"blues"`, `1`, verdicts{n, y, n, n, n}},
		{"StringContains", `["xx","Lu"]`, `"bLUE"`, `"lbue"`, `1`, verdicts{y, n, n, n, n}},
		{"StringNotContains", `["xx","Lu"]`, `"bLUE"`, `"lbue"`, `1`, verdicts{n, y, n, n, n}},
		{"IsNullOrUndefined", ``, `0`, `""`, `{}`, verdicts{n, n, n, y, y}},
		{"IsNotNull", ``, `0`, `""`, `{}`, verdicts{y, y, y, n, n}},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.operator, func(t *testing.T) {
			seen[tt.operator] = true
			f := mustCompile(t, Config{Advanced: []Condition{condition(tt.operator, "data.k", tt.operand)}})
			for i, data := range []string{`{"k":` + tt.hit + `}`, `{"k":` + tt.other + `}`, `{"k":` + tt.alien + `}`, `{"k":null}`, `{"j":1}`} {
				e := gridEvent(data)
				testkit.Equal(t, f.Match(e), tt.want[i], "%s %s on %s", tt.operator, tt.operand, data)
				if got := len(NewIndex([]*Filter{f}).Matcher().Match(e, nil)) == 1; got != tt.want[i] {
					t.Errorf("%s %s on %s: the index gives %v", tt.operator, tt.operand, data, got)
				}
			}
			testkit.Equal(t, f.Match(gridEvent("")), tt.want[4], "%s without data", tt.operator)
		})
	}
	testkit.Slices(t, []any{len(seen), len(operators)}, []any{19, 19}, "operators")
}

// G10: arrays count only where they are turned on; then one element decides.
func TestArrays(t *testing.T) {
	long := `[` + strings.Repeat(`"x",7,`, 500) + `"red",5]`
	for _, tt := range []struct {
		what, operator, operand, array string
		with, without                  bool
	}{
		{"one element is enough", "StringIn", `["red"]`, `["blue","RED"]`, true, false},
		{"none does", "StringIn", `["red"]`, `["blue"]`, false, false},
		{"others are skipped", "StringIn", `["red"]`, `[1,null,{},["red"],true]`, false, false},
		{"beside others", "StringIn", `["red"]`, `[1,null,"red"]`, true, false},
		{"empty, positive", "StringIn", `["red"]`, `[]`, false, false},
		{"empty, negative", "StringNotIn", `["red"]`, `[ ]`, true, false},
		{"negative, one matches", "StringNotIn", `["red"]`, `["blue","red"]`, false, false},
		{"negative, none matches", "StringNotIn", `["red"]`, `["blue"]`, true, false},
		{"negative, all of another type", "StringNotContains", `["red"]`, `[1,2]`, true, false},
		{"numbers", "NumberGreaterThan", `5`, `[1,6]`, true, false},
		{"numbers as text are no numbers", "NumberGreaterThan", `5`, `["6"]`, false, false},
		{"numbers, negative", "NumberNotInRange", `[[5,6]]`, `[1,7]`, true, false},
		{"numbers, negative, one matches", "NumberNotInRange", `[[5,6]]`, `[1,7,5.5]`, false, false},
		{"booleans", "BoolEquals", `true`, `[false,true]`, true, false},
		{"prefixes", "StringBeginsWith", `["re"]`, `["a","red"]`, true, false},
		{"suffixes, negative", "StringNotEndsWith", `["ed"]`, `["a","red"]`, false, false},
		{"an array is not null", "IsNotNull", ``, `[]`, true, true},
		{"not even one of nulls", "IsNullOrUndefined", ``, `[null]`, false, false},
		{"a long one, text at the end", "StringIn", `["RED"]`, long, true, false},
		{"a long one, number at the end", "NumberIn", `[5]`, long, true, false},
		{"a long one, negative", "StringNotIn", `["RED"]`, long, false, false},
		{"a long one, not in it", "StringNotIn", `["green"]`, long, true, false},
	} {
		for _, arrays := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %v", tt.what, arrays), func(t *testing.T) {
				want := arrays && tt.with || !arrays && tt.without
				c := condition(tt.operator, "data.k", tt.operand)
				f := mustCompile(t, Config{Arrays: arrays, Advanced: []Condition{c}})
				// In the second, something else is filed and the array is asked about later.
				second := mustCompile(t, Config{Arrays: arrays, EventTypes: []string{"blob.created"}, Advanced: []Condition{c, c}})
				e := gridEvent(`{"k": ` + tt.array + `}`)
				testkit.Equal(t, f.Match(e), want)
				got := NewIndex([]*Filter{f, second}).Matcher().Match(e, nil)
				if want && len(got) != 2 || !want && len(got) != 0 {
					t.Errorf("the index gives %v", got)
				}
			})
		}
	}
}

// One long array is gone over while another is, and while filters are filed beside each other
// of which only some look into arrays.
func TestLongArraysInAnIndex(t *testing.T) {
	var list []string
	for i := range 500 {
		list = append(list, fmt.Sprintf(`%d,"T%d"`, i, i))
	}
	long := strings.Join(list, ",")
	e := gridEvent(`{"a":[` + long + `],"b":[` + long + `]}`)
	in := func(operator, key, operand string) Condition { return condition(operator, "data."+key, operand) }
	configs := []Config{
		{Arrays: true, Advanced: []Condition{in("StringIn", "a", `["t450"]`), in("StringNotIn", "a", `["x"]`), in("NumberIn", "b", "[470,471]")}},
		{Arrays: true, Advanced: []Condition{in("StringBeginsWith", "a", `["t450"]`)}},
		{Arrays: true, Advanced: []Condition{in("StringEndsWith", "a", `["450"]`)}},
		{Arrays: true, Advanced: []Condition{in("NumberGreaterThan", "a", `498`)}},
		{Advanced: []Condition{in("StringIn", "a", `["t451"]`)}},
		{Advanced: []Condition{in("NumberGreaterThan", "a", `499`)}},
	}
	var filters []*Filter
	for _, cfg := range configs {
		filters = append(filters, mustCompile(t, cfg))
	}
	testkit.Equal(t, fmt.Sprint(NewIndex(filters).Matcher().Match(e, nil)), "[0 1 2 3]")
}

// With arrays, each condition may be met by another element.
func TestBoundsAreMetByDifferentElements(t *testing.T) {
	both := []Condition{condition("NumberGreaterThan", "data.k", "5"), condition("NumberLessThan", "data.k", "3")}
	e := gridEvent(`{"k":[1,9]}`)
	if !mustCompile(t, Config{Arrays: true, Advanced: both}).Match(e) {
		t.Error("9 is above 5, 1 is below 3")
	}
	if mustCompile(t, Config{Advanced: both}).Match(gridEvent(`{"k":4}`)) {
		t.Error("no number is both")
	}
}

// G10: numbers are compared as what they are, not as what a float makes of them.
func TestNumbersAreExact(t *testing.T) {
	for _, tt := range []struct {
		operator, operand, value string
		want                     bool
	}{
		{"NumberIn", "[9007199254740993]", "9007199254740993", true},
		{"NumberIn", "[9007199254740993]", "9007199254740992", false},
		{"NumberGreaterThan", "9007199254740992", "9007199254740993", true},
		{"NumberGreaterThan", "9007199254740992", "9007199254740992.5", true},
		{"NumberLessThan", "18446744073709551615", "18446744073709551614", true},
		{"NumberGreaterThan", "-9223372036854775808", "-9223372036854775807", true},
		{"NumberIn", "[1]", "1.0", true},
		{"NumberIn", "[1]", "10e-1", true},
		{"NumberIn", "[100]", "1E+2", true},
		{"NumberIn", "[0]", "-0.0e5", true},
		{"NumberIn", "[0.1]", "0.10", true},
		{"NumberIn", "[0.3]", "0.30000000000000004", false},
		{"NumberLessThan", "1e400", "1e399", true},
		{"NumberGreaterThan", "1e-400", "1e-399", true},
		{"NumberInRange", "[[-2,-1]]", "-1.5", true},
		{"NumberInRange", "[[-2,-1]]", "-2.00001", false},
	} {
		t.Run(tt.operator, func(t *testing.T) {
			f := mustCompile(t, Config{Advanced: []Condition{condition(tt.operator, "data.k", tt.operand)}})
			testkit.Equal(t, f.Match(gridEvent(`{"k":`+tt.value+`}`)), tt.want, "%s %s %s", tt.value, tt.operator, tt.operand)
		})
	}
}

// G10: what keys lead to.
func TestKeys(t *testing.T) {
	grid := gridEvent(`{"Color":"exact","COLOR":"upper","a":{"b":{"c":"deep"}},"x\u0079":"escaped","é":"accent","dup":"first","dup":"second","list":[{"a":1}],"a.b":"dotted",
		"\u212aelvin":"sign","back\\":"slash","quote\"":"d\\","smile":"\ud83d\ude00","half":"\ud83d!","tab":"\t\/\b\f\n\r"}`)
	cloud := &schema.Envelope{Form: schema.CloudEventForm, ID: []byte("7"), Source: []byte("/Source"), Type: []byte("t"), DataSchema: []byte("#1"), Topic: "/topics/t",
		ContentType: []byte("text/plain"), Data: []byte(` "text" `), Extensions: []schema.Member{
			{Name: []byte("level"), Value: []byte("5")}, {Name: []byte("flag"), Value: []byte("true")}, {Name: []byte("nothing"), Value: []byte("null")},
			{Name: []byte("word"), Value: []byte(`"W\u006frd"`)}, {Name: []byte("eventid"), Value: []byte(`"mine"`)},
			{Name: []byte("Twice"), Value: []byte(`"one"`)}, {Name: []byte("twice"), Value: []byte(`"two"`)}, {Name: []byte("TYPE"), Value: []byte(`"no"`)},
		}}
	for _, tt := range []struct {
		e         *schema.Envelope
		key, want string // empty: nothing
	}{
		{grid, "id", "1"}, {grid, "ID", "1"}, {grid, "topic", "/topics/Blobs"}, {grid, "Subject", "/Blobs/cat.JPG"}, {grid, "EVENTTYPE", "Blob.Created"},
		{grid, "eventTime", "2026-01-02T03:04:05Z"}, {grid, "metadataVersion", "1"},
		{grid, "data.Color", "exact"}, {grid, "Data.COLOR", "upper"}, {grid, "DATA.color", "exact"}, {grid, "data.A.B.C", "deep"}, {grid, "data.a.b.x", ""},
		{grid, "data.a.b.c.d", ""}, {grid, "data.xy", "escaped"}, {grid, "data.XY", "escaped"}, {grid, "data.É", "accent"}, {grid, "data.dup", "first"}, {grid, "data.list.a", ""},
		{grid, "color", ""}, {grid, "level", ""}, {grid, "data.kelvin", "sign"}, {grid, `data.back\`, "slash"}, {grid, `data.QUOTE"`, `D\`},
		{grid, "data.smile", "😀"}, {grid, "data.half", "\ufffd!"}, {grid, "data.tab", "\t/\b\f\n\r"},
		{cloud, "id", "7"}, {cloud, "source", "/Source"}, {cloud, "Type", "t"}, {cloud, "eventtype", "t"}, {cloud, "subject", ""}, {cloud, "datacontenttype", "text/plain"},
		{cloud, "eventtypeversion", "#1"}, {cloud, "dataschema", "#1"}, {grid, "dataschema", ""}, {grid, "source", "/topics/Blobs"}, {cloud, "specversion", "1.0"}, {cloud, "topic", "/topics/t"}, {cloud, "data", "text"}, {cloud, "data.text", ""},
		{cloud, "level", "5"}, {cloud, "LEVEL", "5"}, {cloud, "flag", "true"}, {cloud, "nothing", ""}, {cloud, "word", "word"},
		{cloud, "eventid", "mine"}, {cloud, "twice", "one"},
	} {
		t.Run(fmt.Sprintf("%s of the %v", tt.key, tt.e.Form), func(t *testing.T) {
			want, _ := json.Marshal([]string{tt.want})
			c := condition("StringIn", tt.key, string(want))
			if tt.want == "" {
				c = condition("IsNullOrUndefined", tt.key, "")
			}
			if !mustCompile(t, Config{Advanced: []Condition{c}}).Match(tt.e) {
				t.Errorf("it is not %q on %s", tt.want, tt.e.Data)
			}
		})
	}
}

// What is inside of a member does not change whose it is.
func TestEscapedNamesInsideOfEachOther(t *testing.T) {
	e := gridEvent(`{"\u0063olor":{"\u0043olor":5},"Color":"later"}`)
	f := mustCompile(t, Config{Advanced: []Condition{condition("NumberIn", "data.color.Color", "[5]"), condition("StringIn", "data.Color", `["later"]`)}})
	if !f.Match(e) {
		t.Error("does not match")
	}
}

// An event without a version has an empty one, as it is delivered.
func TestDataVersionIsThere(t *testing.T) {
	if !mustCompile(t, Config{Advanced: []Condition{condition("StringIn", "dataVersion", `[""]`)}}).Match(gridEvent("")) {
		t.Error("it is not empty")
	}
}

// An extension that is a number is one for operators of numbers, too, but the data's numbers
// are not texts.
func TestScalarsAsText(t *testing.T) {
	e := &schema.Envelope{Form: schema.CloudEventForm, Type: []byte("t"), Data: []byte(`{"level":5}`),
		Extensions: []schema.Member{{Name: []byte("level"), Value: []byte("5")}}}
	for text, want := range map[string]bool{
		"level StringIn 5,1": true, "level StringNotIn 5": false, "level StringBeginsWith 5": true, "level NumberGreaterThan 4": true,
		"data.level StringIn 5": false, "data.level StringNotIn 7": false, "data.level NumberIn 5": true,
	} {
		t.Run(text, func(t *testing.T) {
			c := testkit.Value(ParseCondition(text))(t)
			testkit.Equal(t, mustCompile(t, Config{Advanced: []Condition{c}}).Match(e), want, "%s", text)
		})
	}
}

// All conditions have to hold, also several on one key.
func TestConditionsAreJoined(t *testing.T) {
	f := mustCompile(t, Config{EventTypes: []string{"blob.created"}, Advanced: []Condition{
		condition("NumberGreaterThan", "data.n", "1"), condition("NumberLessThanOrEquals", "data.n", "5"), condition("StringContains", "data.s", `["x"]`),
	}})
	for data, want := range map[string]bool{
		`{"n":5,"s":"axb"}`: true, `{"n":1,"s":"axb"}`: false, `{"n":6,"s":"axb"}`: false, `{"n":3,"s":"ab"}`: false, `{"n":3}`: false, `{"s":"x"}`: false,
	} {
		t.Run(data, func(t *testing.T) {
			testkit.Equal(t, f.Match(gridEvent(data)), want, "%s", data)
		})
	}
	f = mustCompile(t, Config{Advanced: []Condition{condition("NumberNotIn", "data.n", "[1]"), condition("NumberNotInRange", "data.n", "[[3,5]]"), condition("NumberLessThan", "data.n", "8")}})
	for data, want := range map[string]bool{`{"n":1}`: false, `{"n":2}`: true, `{"n":4}`: false, `{"n":7}`: true, `{"n":8}`: false} {
		t.Run(data, func(t *testing.T) {
			testkit.Equal(t, f.Match(gridEvent(data)), want, "%s", data)
		})
	}
}

// Room that a huge event took is not kept, and what is kept does not show in the next event.
func TestHugeTexts(t *testing.T) {
	m := NewIndex([]*Filter{mustCompile(t, Config{Advanced: []Condition{condition("StringEndsWith", "data.k", `["end"]`)}})}).Matcher()
	for _, text := range []string{strings.Repeat("É", 10_000) + "END", "End", "x", "ÉEND"} {
		testkit.Equal(t, len(m.Match(gridEvent(`{"k":"`+text+`"}`), nil)) == 1, text != "x", "%.10s", text)
		if room := cap(m.scratch.values[0].room); room > keptRoom {
			t.Errorf("keeps %d bytes", room)
		}
	}
}

// Numbers of filters are places in the slice, rising, behind what was there.
func TestIndexNumbers(t *testing.T) {
	all, none := mustCompile(t, Config{}), mustCompile(t, Config{EventTypes: []string{"never"}})
	x := NewIndex([]*Filter{nil, all, none, mustCompile(t, Config{SubjectEndsWith: "jpg"}), all})
	m := x.Matcher()
	for range 2 { // the second time as the first
		testkit.Equal(t, fmt.Sprint(m.Match(gridEvent(""), []int{9})), "[9 1 3 4]")
	}
	testkit.Equal(t, len(NewIndex(nil).Matcher().Match(gridEvent(`{}`), nil)), 0, "no filters match")
}

// A filter and an index are shared by goroutines, each with a matcher of its own.
func TestSharedByGoroutines(t *testing.T) {
	var filters []*Filter
	for i := range 200 {
		filters = append(filters, mustCompile(t, crowds[i%len(crowds)].make(4700+i)))
	}
	x := NewIndex(filters)
	want := fmt.Sprint(x.Matcher().Match(crowdEvent(), nil))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			m, e := x.Matcher(), crowdEvent()
			for range 20 {
				testkit.Equal(t, fmt.Sprint(m.Match(e, nil)), want)
				for _, f := range filters {
					f.Match(e)
				}
			}
		})
	}
	group.Wait()
}
