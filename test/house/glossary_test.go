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
}

// avoided is a word of the glossary's last column, and the folder that it is avoided in: all
// where it is empty.
type avoided struct{ word, folder string }

// Identifiers, names of metrics and flags, and texts of errors and log lines use the words of
// docs/reference/glossary.md, and none of those that it avoids.
func TestWordsAreThoseOfTheGlossary(t *testing.T) {
	words := avoidedWords(t)
	if len(words) < 10 {
		t.Fatalf("the glossary avoids only %d words: is its table still readable?", len(words))
	}
	found := map[string]string{} // what is wrong, and where it was first seen
	forEachFile(t, func(path string, file *ast.File, fset *token.FileSet) {
		report := func(kind, text string, parts []string, pos token.Pos) {
			for _, part := range parts {
				for _, w := range words {
					if strings.ToLower(part) != w.word || !below(filepath.ToSlash(filepath.Dir(path)), w.folder) && w.folder != "" {
						continue
					}
					key := fmt.Sprintf("%s %q has the word %q", kind, text, w.word)
					if _, seen := found[key]; !seen {
						found[key] = fset.Position(pos).String()
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
			for _, lit := range namesAndTexts(n) {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					continue
				}
				if strings.Contains(text, " ") {
					report("text", text, errorWords(text), lit.Pos())
				} else {
					report("name", text, strings.FieldsFunc(text, func(r rune) bool { return r == '_' || r == '-' }), lit.Pos())
				}
			}
			return true
		})
	})
	for _, what := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s: %s: see docs/reference/glossary.md", found[what], what)
	}
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
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return nil
		}
		var names []*ast.Ident
		for _, left := range n.Lhs {
			if id, ok := left.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
		return names
	}
	return nil
}

// speaks are functions whose literal arguments people meet: errors, log lines, flags, metrics.
var speaks = regexp.MustCompile(`^(New|Errorf|Debug|Info|Warn|Error|NewDesc|desc|counter|gauge|histogram|\w+VarP?|\w+P)$`)

func namesAndTexts(n ast.Node) []*ast.BasicLit {
	var args []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if !speaks.MatchString(nameOf(n.Fun)) {
			return nil
		}
		args = n.Args
	case *ast.KeyValueExpr: // prometheus.Opts{Name: …, Help: …}
		if key, ok := n.Key.(*ast.Ident); !ok || key.Name != "Name" && key.Name != "Help" {
			return nil
		}
		args = []ast.Expr{n.Value}
	}
	var literals []*ast.BasicLit
	for _, arg := range args {
		if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			literals = append(literals, lit)
		}
	}
	return literals
}

func nameOf(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

var (
	plainWord   = regexp.MustCompile(`[A-Za-z]+`)
	ordinary    = map[string]bool{"place": true, "places": true, "tell": true, "tells": true, "told": true, "letter": true} // fine in a sentence
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
			if m[2] == "" && !strings.HasSuffix(m[1], "s") {
				words = append(words, avoided{word: m[1] + "s"})
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
