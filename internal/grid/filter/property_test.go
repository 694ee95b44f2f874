package filter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What events and filters are drawn from is small, so that they often meet.
var (
	someTexts = []string{"\ufffd", "😀", "red", "RED", "Re", "r", "ed", "blue", "5", "true", "", "É", "é", "éx", "K", "k", "kelvin", "\u212a", "a\"b", "a\\", "straße", "x/y", "/X"}
	someNames = []string{"a", "A", "ab", "aB", "AB", "b", "B", "c", "k", "\u212a", "é", "x y", "a\"", "list", "b.c", ""}
	someKeys  = []string{"data.a", "data.A", "data.AB", "Data.b.c", "data.B.C", "data.b", "data.k", "data.é", "data.É", "data.list",
		"data", "DATA.x y", "data.c.c.c", "subject", "Type", "eventType", "id", "topic", "source", "ext", "EXT", "dataVersion", "none"}
	someNumbers = []string{"0", "-0", "0.0", "1", "1.0", "10e-1", "5", "5.5", "-5", "-5.0001", "9007199254740993", "9007199254740992", "9007199254740993.5",
		"18446744073709551615", "18446744073709551614", "-9223372036854775808", "0.1", "0.10", "1e-3", "1E+2", "100", "1e300",
		"1e400", "-1e400", "1e-400", "-1E-400", "0e400", "-0.0e-5", "10e399", "12345678901234567890123456789012345678", "-12345678901234567890123456789012345678",
		"1234567890123456789012345678901234567.9", "0.000000000000000000000000000000000000001"}
	// oddStrings are JSON as it may come: halves of runes, and what need not be escaped.
	oddStrings = []string{`"\ud800"`, `"\udc00x"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\ude00"`, `"\ud800\u0041"`, `"\u0000"`, `"\u0052ed"`, `"\/\u0058"`, `"\u212A"`, `"\ufffd"`,
		"\"\xff\"", "\"re\xc3\"", `"\u00e9X"`, `"[1,\"red\"]"`, `"{\"a\":5}"`}
)

func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// jsonText draws a string, with or without escapes.
func jsonText(t *rapid.T, from []string) string {
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return rapid.SampledFrom(oddStrings).Draw(t, "odd text")
	}
	text := rapid.SampledFrom(from).Draw(t, "text")
	if text != "" && rapid.IntRange(0, 5).Draw(t, "escape") == 0 {
		runes := []rune(text)
		return fmt.Sprintf(`"\u%04x`, runes[0]) + quote(string(runes[1:]))[1:]
	}
	return quote(text)
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t"}).Draw(t, "space")
}

func jsonScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 6).Draw(t, "scalar") {
	case 0:
		return "null"
	case 1:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
	case 2, 3:
		return rapid.SampledFrom(someNumbers).Draw(t, "number")
	}
	return jsonText(t, someTexts)
}

func jsonValue(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case depth > 0 && kind < 3:
		return jsonObject(t, depth-1)
	case depth > 0 && kind < 5:
		return jsonArray(t, depth-1)
	}
	return jsonScalar(t)
}

func jsonObject(t *rapid.T, depth int) string {
	var out []string
	for range rapid.IntRange(0, 6).Draw(t, "members") {
		out = append(out, space(t)+jsonText(t, someNames)+space(t)+":"+space(t)+jsonValue(t, depth)+space(t))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func jsonArray(t *rapid.T, depth int) string {
	var out []string
	for range rapid.IntRange(0, 4).Draw(t, "elements") {
		out = append(out, space(t)+jsonValue(t, depth)+space(t))
	}
	return "[" + space(t) + strings.Join(out, ",") + "]"
}

func maybe(t *rapid.T, from []string) []byte {
	if rapid.IntRange(0, 4).Draw(t, "absent") == 0 {
		return nil
	}
	return []byte(rapid.SampledFrom(from).Draw(t, "text"))
}

func someEvent(t *rapid.T) *schema.Envelope {
	e := &schema.Envelope{Form: schema.EventGridForm, ID: maybe(t, someTexts), Subject: maybe(t, someTexts), Type: maybe(t, someTexts),
		DataVersion: maybe(t, someTexts), Topic: rapid.SampledFrom(someTexts).Draw(t, "topic")}
	if rapid.Bool().Draw(t, "cloud event") {
		e.Form, e.DataVersion, e.Source, e.DataSchema = schema.CloudEventForm, nil, maybe(t, someTexts), maybe(t, someTexts)
		names := rapid.SampledFrom([]string{"ext", "Ext", "other", "topic", "Type"})
		for _, name := range rapid.SliceOfNDistinct(names, 0, 3, strings.ToLower).Draw(t, "extensions") {
			e.Extensions = append(e.Extensions, schema.Member{Name: []byte(name), Value: []byte(jsonValue(t, 1))})
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "data") > 0 {
		e.Data = []byte(jsonValue(t, 3))
	}
	return e
}

// fewKeys draws what the filters of one run ask about, mostly so few that they share keys.
func fewKeys(t *rapid.T) []string {
	if rapid.IntRange(0, 3).Draw(t, "all keys") == 0 {
		return someKeys
	}
	return rapid.SliceOfN(rapid.SampledFrom(someKeys), 1, 3).Draw(t, "keys")
}

func someCondition(t *rapid.T, keys []string) Condition {
	op := rapid.SampledFrom(operators).Draw(t, "operator")
	return condition(op.name, rapid.SampledFrom(keys).Draw(t, "key"), someOperand(t, op.takes))
}

func someOperand(t *rapid.T, takes operand) string {
	number := rapid.SampledFrom(someNumbers)
	switch takes {
	case nothing:
		return ""
	case oneBool:
		return rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool")
	case oneNumber:
		return number.Draw(t, "number")
	case numbers:
		return "[" + strings.Join(rapid.SliceOfN(number, 1, 3).Draw(t, "numbers"), ",") + "]"
	case ranges:
		var list []string
		for range rapid.IntRange(1, 2).Draw(t, "ranges") {
			a, b := number.Draw(t, "low"), number.Draw(t, "high")
			if rat(t, json.Number(a)).Cmp(rat(t, json.Number(b))) > 0 {
				a, b = b, a
			}
			list = append(list, "["+a+","+b+"]")
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	var list []string
	for range rapid.IntRange(1, 3).Draw(t, "texts") {
		list = append(list, jsonText(t, someTexts))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func someConfig(t *rapid.T, keys []string) Config {
	cfg := Config{Arrays: rapid.Bool().Draw(t, "arrays")}
	for range max(0, rapid.IntRange(-2, 3).Draw(t, "conditions")) {
		cfg.Advanced = append(cfg.Advanced, someCondition(t, keys))
	}
	switch rapid.IntRange(0, 3).Draw(t, "basics") {
	case 0:
		cfg.EventTypes = rapid.SampledFrom([][]string{nil, {}, {"all"}, {"All", "red"}, {"Red", "blue"}, {"é", "K"}, {"a", "b", "c", "d", "e", "f", "g", "h", "i", "RED"}}).Draw(t, "types")
	case 1:
		cfg.SubjectCaseSensitive = rapid.Bool().Draw(t, "case")
		cfg.SubjectBeginsWith = rapid.SampledFrom(someTexts).Draw(t, "begins")
		cfg.SubjectEndsWith = rapid.SampledFrom(someTexts).Draw(t, "ends")
	}
	return cfg
}

// G10: every filter decides as the table of operators says.
func TestFilterAgreesWithTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, keys := someEvent(t), fewKeys(t)
		for range 20 {
			cfg := someConfig(t, keys)
			f := testkit.Value(Compile(cfg))(t)
			testkit.MustEqual(t, f.Match(e), oracleMatch(t, cfg, e))
		}
	})
}

// G10: an index gives what its filters give one by one, event after event.
func TestIndexAgreesWithItsFilters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var configs []Config
		var filters []*Filter
		keys := fewKeys(t)
		for range rapid.IntRange(0, 70).Draw(t, "filters") {
			configs = append(configs, someConfig(t, keys))
			f := testkit.Value(Compile(configs[len(configs)-1]))(t)
			if rapid.IntRange(0, 30).Draw(t, "nil") == 0 {
				f = nil
			}
			filters = append(filters, f)
		}
		m := NewIndex(filters).Matcher()
		for range 10 {
			e := someEvent(t)
			got := m.Match(e, []int{-1})
			want := []int{-1}
			for i, f := range filters {
				if f != nil && f.Match(e) {
					want = append(want, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v: %s\non %s %+v", got, want, marshal([]any{configs}), e.Data, e)
			}
		}
	})
}

// G10: the same for long arrays and texts that are asked about often, which go other ways:
// here, all do.
func TestTheWaysOfLongValues(t *testing.T) {
	few, long, many := fewElements, longText, manyLooks
	defer func() { fewElements, longText, manyLooks = few, long, many }()
	for _, looks := range []int{0, 2} {
		fewElements, longText, manyLooks = looks, 1, looks
		t.Run(fmt.Sprintf("after %d looks, alone", looks), TestFilterAgreesWithTheTable)
		t.Run(fmt.Sprintf("after %d looks, in an index", looks), TestIndexAgreesWithItsFilters)
	}
}

// A filter sees what a delivery property would show. (Only names whose length changes with
// their case, as that of the Kelvin sign, a field does not look for.)
func TestKeysLeadWhereFieldsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := someEvent(t)
		invalid := func(m schema.Member) bool { return !utf8.Valid(m.Value) }
		if !utf8.Valid(e.Data) || slices.ContainsFunc(e.Extensions, invalid) {
			return // no such event is taken in, and a field does not look into one
		}
		for _, name := range someKeys {
			if name == "data.k" {
				continue
			}
			k, problem := parseKey(name)
			if problem != nil {
				t.Fatal(problem.what)
			}
			var s scratch
			s.load(newLayout([]key{k}), e)
			got, raw := s.values[0], e.Field(name)
			if raw == nil && got.kind != missing || raw != nil && !sameValue(t, &got, raw) {
				t.Fatalf("%s is %s here (%d), but %s there, on %s", name, got.text, got.kind, raw, e.Data)
			}
		}
	})
}

func sameValue(t *rapid.T, v *value, raw []byte) bool {
	switch {
	case v.kind != kindOf(raw):
		return false
	case v.kind == object:
		return true
	case v.kind != str:
		return string(v.text) == string(raw)
	case v.escaped:
		return string(schema.AppendUnescaped(nil, v.text)) == decode(t, raw).(string)
	}
	return string(v.text) == decode(t, raw).(string)
}
