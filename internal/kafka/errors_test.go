package kafka

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// withoutRow are the errors that need no row, and why.
var withoutRow = map[string]string{
	"errEnded":    "it is nobody's fault",
	"errEvicted":  "it is nobody's fault",
	"errDraining": "it is nobody's fault",
}

// Every error of ours has a row by which it counts, or a reason why not.
func TestFaultsAreTotal(t *testing.T) {
	file := testkit.Value(parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0))(t)
	rows := map[string]int{}
	for _, f := range faults {
		rows[f.name]++
		testkit.Equal(t, judge(fmt.Errorf("doing: %w", f.err)), f.reason, f.name)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "err") {
			return true
		}
		name := spec.Names[0].Name
		_, excused := withoutRow[name]
		if rows[name] != 1 && !excused || rows[name] > 0 && excused {
			t.Errorf("%s has %d rows, excused: %v", name, rows[name], excused)
		}
		delete(rows, name)
		return true
	})
	delete(rows, "os.ErrDeadlineExceeded")
	testkit.Equal(t, len(rows), 0, "rows without an error: %v", rows)
	testkit.Equal(t, judge(io.EOF), "", "a client that goes")
}
