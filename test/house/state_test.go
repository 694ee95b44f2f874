package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What a type holds at most before it is to be divided by owner and lock. An embedded type counts
// as one field: its own are counted with it.
const (
	maxFields  = 25
	maxMethods = 40
)

// Reasons that several types share.
const (
	definition = "a definition: one field for each setting, and no state that changes"
	operations = "one method for each operation, over a few fields that never change"
	oneCall    = "one method for each operation on a single request, whose goroutine alone has its few fields"
)

// large are the types that may hold more, each with its reason.
var large = map[string]string{
	"internal/storage/disk/partition": "fifteen of its methods are the contract; its parts (segments, commits, waiting readers) have types of their own",
	"admin/Client":                    operations,
	"admin/Function":                  definition,
	"admin/Subscription":              definition,
	"admin/SubscriptionRequest":       definition,
	"server/Subscription":             definition,
	"internal/amqp/wire/Reader":       "one method for each type of AMQP, over a slice and a position",
	"internal/api/azureblob/call":     oneCall,
	"internal/api/eventgrid/call":     oneCall,
	"internal/api/v1/Handler":         operations,
	"processor/Config":                definition,
	"internal/api/v1/Config":          definition,
	"internal/config/Config":          definition,
	"server/Config":                   definition,
	"server/yard":                     "the services of a yard, each opened once; those that belong together have types of their own",
}

func TestStateIsInSmallPieces(t *testing.T) {
	fields, methods := map[string]int{}, map[string]int{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		return countState(file, filepath.ToSlash(dir), fields, methods)
	})
	testkit.Must(t, err)
	if len(fields) < 500 {
		t.Fatalf("found only %d struct types", len(fields))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, excepted := large[name]
		tooLarge := fields[name] > maxFields || methods[name] > maxMethods
		switch {
		case tooLarge && !excepted:
			t.Errorf("%s has %d fields and %d methods, and %d and %d are the most: divide it by owner and lock, or give a reason in this test",
				name, fields[name], methods[name], maxFields, maxMethods)
		case !tooLarge && excepted:
			t.Errorf("%s has %d fields and %d methods: it needs no exception any more", name, fields[name], methods[name])
		}
	}
	for name := range large {
		if _, ok := fields[name]; !ok {
			t.Errorf("there is no type %s: take it from the exceptions", name)
		}
	}
}

// countState adds the struct types of a file and their methods, by folder and name.
func countState(file, dir string, fields, methods map[string]int) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				name := path.Join(dir, n.Name.Name)
				for _, f := range s.Fields.List {
					fields[name] += max(1, len(f.Names))
				}
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				methods[path.Join(dir, receiver(n.Recv.List[0].Type))]++
			}
		}
		return true
	})
	return nil
}

// receiver is the name of a method's type, which may be a pointer and have type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
