package measure

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Table is a chapter of a report in Markdown: the first column is text, all others are figures.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	Notes []string
}

// AppendTo adds the table to a document.
func (t Table) AppendTo(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n", t.Title)
	writeRow(b, t.Head)
	b.WriteString("|---|")
	for range t.Head[1:] {
		b.WriteString("---:|")
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		writeRow(b, row)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// ReplaceMarked puts text between the marks of that name in a file.
func ReplaceMarked(name, mark, text string) error {
	begin, end := "<!-- "+mark+": begin -->", "<!-- "+mark+": end -->"
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(old, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("write %s: it needs the lines %s and %s", name, begin, end)
	}
	return os.WriteFile(name, fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, begin, text, end, after), 0o644)
}
