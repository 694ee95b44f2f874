package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/eventyard/eventyard/internal/testkit"
)

// idioms are names that hold an avoided word in another sense.
var idioms = map[string]string{
	"inPlace": "retried in place: where it is",
	"Place":   "a frame is placed: it is given its number and time",
}

// avoided is a word of the glossary's last column, and the folder that it is avoided in: all
// where it is empty.
type avoided struct{ word, folder string }

// fixed are names in literals that hold an avoided word and cannot change, by folder: they are
// stored, or sent and received by others, or another's.
var fixed = map[string][]string{
	"admin":                              {`json:"doors`},
	"internal/demo":                      {"door"},                      // of a home
	"event":                              {"door opened", "front door"}, // of a house
	"hub":                                {"front door"},
	"internal/api/azureblob":             {"tier"}, // Azure's
	"internal/api/frame":                 {"too-many-facts"},
	"internal/functions/notify":          {`json:"told`},
	"internal/grid/deadletter":           {`json:"place`},
	"internal/grid/retrylog":             {"grid-tiers", "grid/tiers/", "tier-", "grid/shelves/", "shelf-"},
	"internal/hubs/broker":               {"places/"},
	"internal/hubs/groups":               {"fact/"},
	"internal/hubs/groupwire":            {"facts", `json:"fact`},
	"internal/storage":                   {"places/"},
	"internal/storage/bolt":              {"facts"},
	"internal/storage/jetstream/entries": {"places/", "grid/tiers/", "grid/shelves/"},
	"internal/storage/meta/sealed":       {"places/"},
	"processor/azblob":                   {"eventyard/fact/"},
	"processor/natskv":                   {"fact."},
	"processor/postgres":                 {"{facts}", "facts"},
	"processor/redis":                    {"facts"},
}

// Identifiers use the words of docs/reference/glossary.md, and none of those that it avoids; and so
// does each literal of the program, as it may be the name of a metric, a label, a flag or a field,
// or a part of an error, a log line or a help text.
func TestWordsAreThoseOfTheGlossary(t *testing.T) {
	words := avoidedWords(t)
	if len(words) < 10 {
		t.Fatalf("the glossary avoids only %d words: is its table still readable?", len(words))
	}
	found, used := map[string]string{}, map[string]bool{} // what is wrong, and where it was first seen
	forEachFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		for what, pos := range wrongWords(words, path, file, used) {
			if _, seen := found[what]; !seen {
				found[what] = fset.Position(pos).String()
			}
		}
	})
	for _, what := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s: %s: see docs/reference/glossary.md", found[what], what)
	}
	for folder, all := range fixed {
		for _, name := range all {
			testkit.That(t, used[folder+" "+name], "%s has no literal with %q any more: take it from the exceptions", folder, name)
		}
	}
}

// TestWrongWordsAreFound: wherever a word can stand that people meet.
func TestWrongWordsAreFound(t *testing.T) {
	words := []avoided{{word: "tier"}, {word: "place"}, {word: "letter", folder: "functions"}}
	for name, tt := range map[string]struct {
		path, code string
		want       int
	}{
		"a function":                {"a.go", `func oldTier() {}`, 1},
		"a parameter":               {"a.go", `func f(tier int) {}`, 1},
		"a variable":                {"a.go", `func f() { tier := 1; _ = tier }`, 1},
		"variables of a range":      {"a.go", `func f() { for tier, place := range x { _, _ = tier, place } }`, 2},
		"a label of code":           {"a.go", `func f() { tier: for { break tier } }`, 1},
		"a field of a definition":   {"a.go", `var f = Field{Name: "x", Flag: "tier", Value: "place"}`, 2},
		"labels of a metric":        {"a.go", `var d = NewDesc("a", "b", []string{"tier"}, nil)`, 1},
		"a part of a metric's name": {"a.go", `var d = NewDesc("a_"+"tier_total", "b", nil, nil)`, 1},
		"a part of an error":        {"a.go", `var e = errors.New("no such tier: "+next)`, 1},
		"a row of an error table":   {"a.go", `var r = []row{{kind: "x", next: "use another tier"}}`, 1},
		"a helper's argument":       {"a.go", `var e = invalid("x", "%s is no tier")`, 1},
		"a name in JSON":            {"a.go", "type t struct { A int `json:\"oldTier\"` }", 1},
		"an ordinary word":          {"a.go", `var e = errors.New("in the place of another")`, 0},
		"another word":              {"a.go", `var frontier = "frontier"`, 0},
		"an import":                 {"a.go", `import "example.com/tier"`, 0},
		"a text of a test":          {"a_test.go", `func f() { t.Errorf("the tier is %d", 1) }`, 1},
		"data of a test":            {"a_test.go", `var subject = "tier"`, 0},
		"a word of another folder":  {"grid/a.go", `type letter int`, 0},
		"a word of this folder":     {"functions/a.go", `type letter int`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "", "package a\n"+tt.code, parser.SkipObjectResolution)
			testkit.Must(t, err)
			got := wrongWords(words, tt.path, file, map[string]bool{})
			testkit.Equal(t, len(got), tt.want, "found %v", got)
		})
	}
}

// wrongWords gives what is wrong in a file, and where it is. It notes the exceptions that it used.
func wrongWords(words []avoided, path string, file *ast.File, used map[string]bool) map[string]token.Pos {
	wrong := map[string]token.Pos{}
	folder, test := filepath.ToSlash(filepath.Dir(path)), strings.HasSuffix(path, "_test.go")
	report := func(kind, text string, parts []string, pos token.Pos) {
		for _, part := range parts {
			for _, w := range words {
				if strings.ToLower(part) == w.word && (w.folder == "" || below(folder, w.folder)) {
					wrong[fmt.Sprintf("%s %q has the word %q", kind, text, w.word)] = pos
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, id := range declared(n) {
			if idioms[id.Name] == "" {
				report("identifier", id.Name, camelWords(id.Name), id.Pos())
			}
		}
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			_, imported := n.(*ast.ImportSpec)
			return !imported
		}
		text, _ := strconv.Unquote(lit.Value) // which the parser has found right
		for _, name := range fixed[folder] {
			if strings.Contains(text, name) {
				text, used[folder+" "+name] = strings.ReplaceAll(text, name, ""), true
			}
		}
		switch {
		case folder == "test/house": // names all of them
		case strings.Contains(text, " "):
			report("text", text, errorWords(text), lit.Pos())
		case !test: // a test's names are data that anybody might send
			for _, name := range plainWord.FindAllString(text, -1) {
				report("name", text, camelWords(name), lit.Pos())
			}
		}
		return true
	})
	return wrong
}

// TestCamelWords: what is one word for the glossary.
func TestCamelWords(t *testing.T) {
	for name, want := range map[string]string{
		"openDoor": "open Door", "HTTPDoors": "HTTP Doors", "door": "door", "test_door": "test door", "replaced": "replaced", "URL": "URL",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, strings.Join(camelWords(name), " "), want, "words of %s", name)
		})
	}
}

// declared gives the names that a node introduces. Names of others' packages are theirs.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.LabeledStmt:
		return []*ast.Ident{n.Label}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Key, n.Value)
		}
	}
	return nil
}

func identifiers(all ...ast.Expr) []*ast.Ident {
	var ids []*ast.Ident
	for _, e := range all {
		if id, ok := e.(*ast.Ident); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

var (
	plainWord   = regexp.MustCompile(`[A-Za-z]+`)
	ordinary    = map[string]bool{"place": true, "places": true, "tell": true, "tells": true, "told": true, "letter": true, "letters": true} // fine in a sentence
	scopedWord  = regexp.MustCompile(`^(\w+)(?: \(([\w/]+)\))?$`)
	glossaryRow = regexp.MustCompile(`(?m)^\|[^|]+\|[^|]+\|([^|]+)\|$`)
)

// errorWords leaves out words that have a plain sense in a sentence.
func errorWords(text string) []string {
	return slices.DeleteFunc(plainWord.FindAllString(text, -1), func(w string) bool { return ordinary[strings.ToLower(w)] })
}

func avoidedWords(t *testing.T) []avoided {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "glossary.md"))
	testkit.Must(t, err)
	var words []avoided
	for _, row := range glossaryRow.FindAllStringSubmatch(string(page), -1) {
		for part := range strings.SplitSeq(row[1], ",") {
			m := scopedWord.FindStringSubmatch(strings.TrimSpace(part))
			if m == nil || m[1] == "not" {
				continue
			}
			words = append(words, avoided{word: m[1], folder: m[2]})
			if !strings.HasSuffix(m[1], "s") {
				words = append(words, avoided{word: m[1] + "s", folder: m[2]})
			}
		}
	}
	return words
}

func camelWords(name string) []string {
	var words []string
	runes, start := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		switch {
		case i == len(runes), runes[i] == '_', unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]),
			unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			if word := strings.Trim(string(runes[start:i]), "_"); word != "" {
				words = append(words, word)
			}
			start = i
		}
	}
	return words
}

// forEachFile parses each Go file of the module, tests included.
func forEachFile(t *testing.T, visit func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(rel, file, fset)
		return nil
	})
	testkit.Must(t, err)
}
