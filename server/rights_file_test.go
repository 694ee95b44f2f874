package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// LetIn is the outcome of a request that got past admission, whatever became of it then.
const LetIn = "in"

// ReadRights reads the table of rights: lines of a cell for each credential, an API, a method and a
// path. The first line that is no comment names the credentials. It gives the rows of some APIs.
func ReadRights(t *testing.T, of func(api string) bool) (rows map[string][]string, columns []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "rights.txt"))
	testkit.Must(t, err)
	rows = map[string][]string{}
	for at, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case columns == nil:
			columns = words
		case len(words) != 3+len(columns):
			t.Fatalf("testdata/rights.txt:%d has %d words, want %d cells, an API, a method and a path", at+1, len(words), len(columns))
		case !of(words[len(columns)]):
		default:
			cells, route := words[:len(columns)], strings.Join(words[len(columns):], " ")
			if rows[route] != nil {
				t.Fatalf("testdata/rights.txt:%d: %s is there twice", at+1, route)
			}
			rows[route] = cells
			for _, cell := range cells {
				if cell != LetIn && cell != "401" && cell != "403" {
					t.Fatalf("testdata/rights.txt:%d: a cell is in, 401 or 403, and not %s", at+1, cell)
				}
			}
		}
	}
	return rows, columns
}

// RightsLine writes a row as it stands in the table.
func RightsLine(name string, cells []string) string {
	var text strings.Builder
	for _, cell := range cells {
		fmt.Fprintf(&text, "%-11s", cell)
	}
	return strings.TrimSpace(text.String() + name)
}
