package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
)

// definitionFiller puts a mapping into one definition (a hub, a subscription) by the rows of its
// spec.
type definitionFiller struct {
	*filler
	spec spec.Definition
	// into points to the request of package admin.
	into any
}

// fields fills the fields whose names begin with prefix.
func (f *definitionFiller) fields(path, prefix string, n node) {
	seen := map[string]bool{}
	for _, fd := range n.fields {
		name := prefix + fd.key
		switch known := f.keys(prefix); {
		case !slices.Contains(known, fd.key):
			f.unknown(fd.at, fd.key, DidYouMean(fd.key, known))
		case seen[name]:
			f.complain(fd.at, join(path, fd.key), "given twice")
		default:
			seen[name] = true
			f.field(join(path, fd.key), name, fd.value)
		}
	}
}

// keys are those that may stand behind a prefix, in the order of the rows.
func (f *definitionFiller) keys(prefix string) (keys []string) {
	for _, row := range f.spec.List(spec.File) {
		rest, ok := strings.CutPrefix(row.Name, prefix)
		key, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// field fills one field.
func (f *definitionFiller) field(path, name string, n node) {
	if n.kind == null {
		return
	}
	f.positions[path] = n.at
	row, isField := f.spec.Field(name)
	row.Name = name
	isObject := len(f.keys(name+".")) > 0
	if forms := f.forms(row, isField, isObject); !slices.Contains(forms, n.kind) {
		f.complain(n.at, path, fmt.Sprintf("%s is wanted here, not %s", forms[0], n.kind))
		return
	}
	switch {
	case n.kind == scalar:
		f.report(n.at, path, row.Set(f.into, n.text))
	case n.kind == list:
		row.Clear(f.into)
		t := f.spec.Kind(row)
		objects := t == reflect.TypeFor[[]admin.Filter]() || t == reflect.TypeFor[admin.Headers]()
		for i, item := range n.items {
			at := fmt.Sprintf("%s[%d]", path, i)
			f.positions[at] = item.at
			switch {
			case item.kind == scalar:
				f.report(item.at, at, row.Set(f.into, item.text))
			case item.kind == mapping && objects:
				f.report(item.at, at, row.SetJSON(f.into, item.json()))
			default:
				f.complain(item.at, at, fmt.Sprintf("%s is wanted here, not %s", scalar, item.kind))
			}
		}
	case isObject:
		row.Clear(f.into)
		f.fields(path, name+".", n)
	case f.spec.Kind(row).Kind() == reflect.Map:
		row.Clear(f.into)
		for _, entry := range n.fields {
			row.SetEntry(f.into, entry.key, entry.value.text)
		}
	default:
		f.report(n.at, path, row.SetJSON(f.into, n.json()))
	}
}

// forms are the kinds of node that a field may be written as, the usual one first.
func (f *definitionFiller) forms(row spec.Field, isField, isObject bool) []kind {
	switch {
	case !isField:
		return []kind{mapping}
	case isObject:
		return []kind{scalar, mapping}
	}
	switch t := f.spec.Kind(row); {
	case t == reflect.TypeFor[json.RawMessage]():
		return []kind{mapping}
	case t == reflect.TypeFor[admin.Statuses]():
		return []kind{list, scalar}
	case t.Kind() == reflect.Map:
		return []kind{list, mapping}
	case t.Kind() == reflect.Slice:
		return []kind{list}
	}
	return []kind{scalar}
}

// checkDefinition adds what the rows of a spec say against a definition.
func checkDefinition(found *complaints, at string, d spec.Definition, definition any) {
	for name, err := range d.Check(definition) {
		found.addError(at+"."+name, err)
	}
}
