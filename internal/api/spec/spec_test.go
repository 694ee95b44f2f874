package spec

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/definitions.md anew")

// Every field of a request has a row, and every row has a field.
func TestRowsAndTypesSayTheSame(t *testing.T) {
	for _, d := range Definitions() {
		flags := map[Where][]string{}
		for _, f := range d.Fields {
			f.value(reflect.New(d.Type).Interface()) // which panics where there is none
			if (f.Not == 0) != (f.Because == "") {
				t.Errorf("%s.%s cannot be set everywhere: tell why, or why not", d.Name, f.Name)
			}
			if _, ok := d.Field(f.Needs); f.Needs != "" && !ok {
				t.Errorf("%s.%s needs %s, which is no field", d.Name, f.Name, f.Needs)
			}
			for _, w := range []Where{Create, Update} {
				if f.In(w) && slices.Contains(flags[w], f.FlagName()) {
					t.Errorf("%s has two flags --%s", d.Name, f.FlagName())
				}
				flags[w] = append(flags[w], f.FlagName())
			}
		}
		for _, name := range Names(d.Type) {
			if !slices.ContainsFunc(d.Fields, func(f Field) bool { return f.Name == name || strings.HasPrefix(f.Name, name+".") }) {
				t.Errorf("%s.%s has no row", d.Name, name)
			}
		}
	}
}

func TestTheReferenceOfDefinitionsIsUpToDate(t *testing.T) {
	name := filepath.Join("..", "..", "..", "docs", "reference", "definitions.md")
	page := reference()
	if *update {
		testkit.Must(t, os.WriteFile(name, []byte(page), 0o644))
	}
	if kept, err := os.ReadFile(name); err != nil || string(kept) != page {
		t.Errorf("%s is out of date; go test ./internal/api/spec -update writes it (%v)", name, err)
	}
}

// reference is a table for each definition.
func reference() string {
	var b strings.Builder
	b.WriteString("# Definitions\n\nWhat hubs, topics, subscriptions, functions and policies can be told. The same words are the fields of the JSON under\n" +
		"`/api/v1`, the keys of the lists in `eventyard.yaml`, and the flags of `create` and `update`; where a word is missing, the\n" +
		"last column says why. This page is written by `go test ./internal/api/spec -update`.\n")
	for _, d := range Definitions() {
		fmt.Fprintf(&b, "\n## %s\n\n| field | flag | meaning | not |\n|---|---|---|---|\n", strings.ToUpper(d.Name[:1])+d.Name[1:])
		for _, f := range d.Fields {
			flag := "`--" + f.FlagName() + "`"
			if !f.In(Create) && !f.In(Update) {
				flag = ""
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, flag, strings.ReplaceAll(f.Sentence(), "|", `\|`), f.exceptions())
		}
	}
	return b.String()
}

func (f Field) exceptions() string {
	if f.Not == 0 {
		return ""
	}
	var names []string
	for _, w := range []struct {
		where Where
		name  string
	}{{API, "API"}, {File, "file"}, {Create, "create"}, {Update, "update"}} {
		if !f.In(w.where) {
			names = append(names, w.name)
		}
	}
	return strings.Join(names, ", ") + ": " + f.Because
}
