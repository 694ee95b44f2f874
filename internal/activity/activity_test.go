package activity

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: a definition is told of as created, changed by its fields, or deleted; keys apart, and never a value.
func TestDefinitions(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after string
		want          []Entry
	}{
		"created":           {"", `{"name":"a"}`, []Entry{{Kind: "hub.created"}}},
		"deleted":           {`{"name":"a"}`, "", []Entry{{Kind: "hub.deleted"}}},
		"marked":            {`{"name":"a"}`, `{"name":"a","state":"deleting"}`, []Entry{{Kind: "hub.deleted"}}},
		"then removed":      {`{"name":"a","deleting":true}`, "", nil},
		"changed":           {`{"name":"a","quota":1}`, `{"name":"a","tags":2}`, []Entry{{Kind: "hub.changed", Fields: []string{"quota", "tags"}}}},
		"a key":             {`{"primary":"x"}`, `{"primary":"y"}`, []Entry{{Kind: KeyRegenerated, Fields: []string{"primary"}}}},
		"a key and more":    {`{"primary":"x"}`, `{"primary":"y","quota":1}`, []Entry{{Kind: KeyRegenerated, Fields: []string{"primary"}}, {Kind: "hub.changed", Fields: []string{"quota"}}}},
		"nothing of note":   {`{"updated":1}`, `{"updated":2}`, nil},
		"nothing":           {`{"a":1}`, `{"a":1}`, nil},
		"nothing, and none": {"", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Entry
			notes := Notes(func(_ context.Context, e Entry) {
				testkit.That(t, !e.At.IsZero() && e.By == "till" && e.Address == "192.0.2.1" && e.Object == "hubs/a%2Fb", "it is %+v", e)
				got = append(got, Entry{Kind: e.Kind, Fields: e.Fields})
			})
			notes.Define(By(t.Context(), "till", "192.0.2.1"), Definition{
				What: "hub", Object: Path("hubs", "a/b"), Before: []byte(tt.before), After: []byte(tt.after), Keys: []string{"primary"}, Leave: []string{"updated"},
			})
			testkit.Deep(t, got, tt.want)
		})
	}
	Notes(nil).Define(t.Context(), Definition{After: []byte(`{}`)}) // nobody hears of it
	Notes(nil).Note(t.Context(), Entry{})
}

// V5: whoever asks for a kind is told whether there is one: all that are declared here are known, and their
// families.
func TestKindsAreKnown(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "activity.go", nil, 0)
	testkit.Must(t, err)
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Kind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			testkit.Must(t, err)
			declared++
			testkit.That(t, IsKind(text) && IsKind(Kind(text).Family()), "%s is not known", text)
		}
		return true
	})
	testkit.Equal(t, declared, len(special), "kinds that are declared")
	for name, known := range map[string]bool{"hub": true, "hub.created": true, "blob-account.changed": true, "hub.moved": false, "nothing": false, "": false, "hub.": false, ".created": false} {
		testkit.Equal(t, IsKind(name), known, name)
	}
}
