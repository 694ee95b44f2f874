package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/api/spec"
)

// node is a file's content without its syntax, so that one filler serves both
// formats and every complaint can say where.
type node struct {
	at     position
	kind   kind
	text   string  // of a scalar
	bare   bool    // the scalar is a number or a boolean
	fields []field // of a mapping
	items  []node  // of a list
}

type field struct {
	at    position
	key   string
	value node
}

type position struct{ line, column int }

type kind uint8

const (
	null kind = iota
	scalar
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping"}[k]
}

// json writes what the file says as JSON.
func (n node) json() []byte {
	switch n.kind {
	case scalar:
		if n.bare && json.Valid([]byte(n.text)) {
			return []byte(n.text)
		}
		quoted, _ := json.Marshal(n.text) // text always can be
		return quoted
	case list:
		items := make([][]byte, len(n.items))
		for i, item := range n.items {
			items[i] = item.json()
		}
		return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
	case mapping:
		members := make([][]byte, len(n.fields))
		for i, fd := range n.fields {
			members[i] = slices.Concat(node{kind: scalar, text: fd.key}.json(), []byte(":"), fd.value.json())
		}
		return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))
	}
	return []byte("null")
}

// filler puts a tree of nodes into a struct by the key tags of its fields. What is
// wrong is gathered, so that the user sees all of it at once.
type filler struct {
	// foldCase matches keys whatever their case.
	foldCase bool
	// unknown hears of each key that has no field, with the one that was probably meant, or none.
	unknown func(at position, key, nearest string)

	problems []located
	// positions has where each scalar was given, by its path.
	positions map[string]position
}

// located is a problem with its place inside the file.
type located struct {
	at     position
	key    string
	reason string
}

func (f *filler) fill(path string, n node, v reflect.Value) {
	if n.kind == null {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(path, n, v.Elem())
		return
	}
	if want := kindOf(v); n.kind != want {
		f.complain(n.at, path, fmt.Sprintf("%s is wanted here, not %s", want, n.kind))
		return
	}
	switch n.kind {
	case mapping:
		if d, ok := spec.Of(v.Type()); ok {
			(&definitionFiller{f, d, v.Addr().Interface()}).fields(path, "", n)
			return
		}
		f.fillStruct(path, n, v)
	case list:
		v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
		for i, item := range n.items {
			at := fmt.Sprintf("%s[%d]", path, i)
			f.fill(at, item, v.Index(i))
			f.positions[at] = item.at
		}
	default:
		f.positions[path] = n.at
		f.report(n.at, path, setScalar(v, n.text))
	}
}

func kindOf(v reflect.Value) kind {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return scalar
	}
	switch v.Kind() {
	case reflect.Struct:
		return mapping
	case reflect.Slice:
		return list
	default:
		return scalar
	}
}

func (f *filler) fillStruct(path string, n node, v reflect.Value) {
	keys := make([]string, v.NumField())
	for i := range keys {
		keys[i] = v.Type().Field(i).Tag.Get("key")
	}
	seen := map[int]bool{}
	for _, fd := range n.fields {
		i := slices.IndexFunc(keys, func(known string) bool {
			return known == fd.key || f.foldCase && strings.EqualFold(known, fd.key)
		})
		switch {
		case i < 0:
			f.unknown(fd.at, fd.key, DidYouMean(fd.key, keys))
		case seen[i]:
			f.complain(fd.at, join(path, keys[i]), "given twice")
		default:
			seen[i] = true
			f.fill(join(path, keys[i]), fd.value, v.Field(i))
		}
	}
}

func (f *filler) report(at position, path string, err error) {
	if err != nil {
		f.complain(at, path, err.Error())
	}
}

func (f *filler) complain(at position, key, reason string) {
	f.problems = append(f.problems, located{at, key, reason})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
