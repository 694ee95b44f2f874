package filter

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Look-ups meet bytes that nobody checked: they may find nothing, but never panic; and in what
// is JSON they find what the oracle finds.
func FuzzLookUps(f *testing.F) {
	for _, seed := range []string{"", " ", "{", "[", `"`, `{"a":`, `{"a":1,`, `{"a"`, `{"\`, `{"a\"":[1,"x",{"b":2}],"b":{"c":"\ud83d\ude00"}}`, `[1,2`, `[[[[`, `{"b":{"c":1},"B":2}`,
		`{"list":["red",5,,]}`, `{"a" 1}`, `{"a":tru}`, `{"a":-}`, `nul`, `{"a":"\u12"}`, `{"A":{},"a":[]}`, "{\"\xff\":1}", `{"a":1}}`, `{"c":{"c":{"c":0}}}`, `{"b":}`} {
		f.Add([]byte(seed))
	}
	var configs []Config
	var filters []*Filter
	for _, key := range someKeys {
		for _, op := range operators {
			operand := map[operand]string{oneBool: "true", oneNumber: "5", numbers: "[5,1]", ranges: "[[1,5]]", strs: `["red",""]`}[op.takes]
			configs = append(configs, Config{Arrays: len(configs)%2 == 0, Advanced: []Condition{condition(op.name, key, operand)}})
			filters = append(filters, mustCompile(f, configs[len(configs)-1]))
		}
	}
	index := NewIndex(filters)
	f.Fuzz(func(t *testing.T, data []byte) {
		e := &schema.Envelope{Form: schema.CloudEventForm, Type: data, Subject: data, Data: data, Extensions: []schema.Member{{Name: []byte("ext"), Value: data}, {Name: data, Value: data}}}
		index.Matcher().Match(e, nil)
		if len(data) > 1000 || !json.Valid(data) || tooBig(decode(t, data)) {
			return
		}
		e = &schema.Envelope{Form: schema.EventGridForm, Data: data}
		matched := index.Matcher().Match(e, nil)
		for i, cfg := range configs {
			want := oracleMatch(t, cfg, e)
			got := len(matched) > 0 && matched[0] == i
			if got {
				matched = matched[1:]
			}
			if got != want || filters[i].Match(e) != want {
				t.Fatalf("%s on %q: got %v, want %v", show(cfg.Advanced[0]), data, got, want)
			}
		}
	})
}

// tooBig tells whether there are numbers that would take the oracle long.
func tooBig(value any) bool {
	switch v := value.(type) {
	case json.Number:
		n, _ := parseNum([]byte(v))
		magnitude := max(n.rank, -n.rank) - rankOffset
		return len(v) > 30 || n.rank != 0 && max(magnitude, -magnitude) > 400
	case []any:
		return slices.ContainsFunc(v, tooBig)
	case members:
		for _, m := range v {
			if tooBig(m.value) {
				return true
			}
		}
	}
	return false
}

// Whatever is typed, there is a condition or words that help.
func FuzzParseCondition(f *testing.F) {
	for _, seed := range []string{"", " ", "data.k NumberIn 1,2", "data.k NumberInRange 1-2", `data.k StringIn ["a"`, "data.k StringIn a,b", "k.l x", "data. IsNotNull", "data.k BoolEquals \xff",
		"data.k NumberGreaterThan 1e999999999", "data.\xff StringIn \xff", "a\u2028b IsNotNull"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err != nil {
			return
		}
		if _, err := Compile(Config{Advanced: []Condition{c}}); err != nil && len(c.Values) < 60 {
			t.Fatalf("%q is parsed, but %v", text, err)
		}
		if raw, err := json.Marshal(c); err != nil {
			t.Fatalf("%q is parsed, but %s cannot be written: %v", text, raw, err)
		}
	})
}
