package filter

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V2: each condition says what it met, and whether that passes.
func TestExplain(t *testing.T) {
	e := gridEvent(`{"kind":"glass","total":7,"tags":["a","b"],"note":"say \"hi\"","none":null,"long":"` + strings.Repeat("é", 600) + `"}`)
	long := `"` + strings.Repeat("é", 256) + `…"`
	for _, tt := range []struct {
		what   string
		filter Config
		words  []string // of those that pass, with "yes: " before them, and of those that do not
	}{
		{"no filter", Config{}, nil},
		{"all types", Config{EventTypes: []string{"All"}}, nil},
		{"a type", Config{EventTypes: []string{"x", "blob.created"}}, []string{`yes: type StringIn ["x","blob.created"], and it is "Blob.Created"`}},
		{"a subject", Config{SubjectBeginsWith: "/blobs/", SubjectEndsWith: ".jpg", SubjectCaseSensitive: true}, []string{
			`no: subject StringBeginsWith ["/blobs/"], and it is "/Blobs/cat.JPG"`, `no: subject StringEndsWith [".jpg"], and it is "/Blobs/cat.JPG"`,
		}},
		{"one of data", Config{Advanced: []Condition{condition("stringin", "data.kind", `["smoke","co"]`)}}, []string{`no: data.kind StringIn ["smoke","co"], and it is "glass"`}},
		{"bounds of one number", Config{Advanced: []Condition{condition("NumberGreaterThan", "data.total", "5"), condition("NumberLessThan", "data.total", "6")}}, []string{
			`yes: data.total NumberGreaterThan 5, and it is 7`, `no: data.total NumberLessThan 6, and it is 7`,
		}},
		{"what is not there", Config{Advanced: []Condition{condition("NumberGreaterThan", "data.sum", "5")}}, []string{`no: data.sum NumberGreaterThan 5, and the event has none`}},
		{"what has to be absent", Config{Advanced: []Condition{{Operator: "IsNullOrUndefined", Key: "data.none"}}}, []string{`yes: data.none IsNullOrUndefined, and it is null`}},
		{"an array", Config{Advanced: []Condition{condition("StringIn", "data.tags", `["b"]`)}}, []string{`no: data.tags StringIn ["b"], and it is ["a","b"]`}},
		{"its elements", Config{Arrays: true, Advanced: []Condition{condition("StringIn", "data.tags", `["b"]`)}}, []string{`yes: data.tags StringIn ["b"], and it is ["a","b"]`}},
		{"escapes", Config{Advanced: []Condition{condition("StringContains", "data.note", `["\"hi"]`)}}, []string{`yes: data.note StringContains ["\"hi"], and it is "say \"hi\""`}},
		{"a long text", Config{Advanced: []Condition{condition("StringContains", "data.long", `["x"]`)}}, []string{`no: data.long StringContains ["x"], and it is ` + long}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			findings := testkit.Value(Explain(tt.filter, e))(t)
			var got []string
			for _, f := range findings {
				got = append(got, map[bool]string{true: "yes: ", false: "no: "}[f.Passes]+f.Words())
			}
			testkit.Slices(t, got, tt.words)
			testkit.Equal(t, Failed(findings) == nil, mustCompile(t, tt.filter).Match(e), "with the filter itself")
		})
	}
	testkit.ErrorIs(t, testkit.Err(Explain(Config{Advanced: []Condition{{Operator: "Frobnicate", Key: "data.k"}}}, e)), ErrInvalid)
}

// V2: what Explain says is what the filter does, whatever the filter and the event.
func TestExplainAgreesWithMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, e := someConfig(t, fewKeys(t)), someEvent(t)
		f, err := Compile(cfg)
		if err != nil {
			t.Skip("not allowed")
		}
		findings, err := Explain(cfg, e)
		if err != nil || (Failed(findings) == nil) != f.Match(e) {
			t.Fatalf("%+v of %s: %+v, %v, and it matches: %v", cfg, e.Data, findings, err, f.Match(e))
		}
	})
}
