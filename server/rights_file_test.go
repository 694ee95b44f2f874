package server

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// LetIn is the outcome of a request that got past admission, whatever became of it then.
const LetIn = "in"

// ReadRights reads the table of rights over HTTP: a name is an API, a method and a path. It gives the rows of
// some APIs.
func ReadRights(t *testing.T, of func(api string) bool) (rows map[string][]string, columns []string) {
	t.Helper()
	rows, columns = ReadTable(t, "rights.txt", 3, LetIn, "401", "403", "501")
	maps.DeleteFunc(rows, func(route string, _ []string) bool {
		api, _, _ := strings.Cut(route, " ")
		return !of(api)
	})
	return rows, columns
}

// ReadTable reads a table of rights: lines of a cell for each credential, which is one of these, and a name of so
// many words. The first line that is no comment names the credentials.
func ReadTable(t *testing.T, file string, words int, cells ...string) (rows map[string][]string, columns []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	testkit.Must(t, err)
	rows = map[string][]string{}
	for at, line := range strings.Split(string(text), "\n") {
		row := strings.Fields(line)
		switch {
		case len(row) == 0 || strings.HasPrefix(row[0], "#"):
		case columns == nil:
			columns = row
		case len(row) != words+len(columns):
			t.Fatalf("testdata/%s:%d has %d words, want %d cells and a name of %d", file, at+1, len(row), len(columns), words)
		default:
			name := strings.Join(row[len(columns):], " ")
			if rows[name] != nil {
				t.Fatalf("testdata/%s:%d: %s is there twice", file, at+1, name)
			}
			rows[name] = row[:len(columns)]
			for _, cell := range rows[name] {
				if !slices.Contains(cells, cell) {
					t.Fatalf("testdata/%s:%d: a cell is one of %q, and not %s", file, at+1, cells, cell)
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
