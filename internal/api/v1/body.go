package v1

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/config"
)

// readJSON reads the whole body of a management request into v. The client may take its time over
// the body, so what it was let in with is looked at again.
func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return notJSON(err, jsonHelp, fieldNames(reflect.TypeOf(v))...)
	}
	if err := endOfJSON(dec); err != nil {
		return err
	}
	return stillLetIn(r)
}

// endOfJSON makes sure that nothing follows the value that was read.
func endOfJSON(dec *json.Decoder) error {
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		if as[*http.MaxBytesError](err) {
			return err
		}
		return badRequest("send one JSON value", "the body goes on after its JSON value")
	}
	return nil
}

// checkCoding refuses bodies that are compressed: their bytes would be taken for what they stand for.
func checkCoding(r *http.Request) error {
	switch coding := r.Header.Get("Content-Encoding"); strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return nil
	default:
		return badRequest("send the body as it is, without the header Content-Encoding", "the body is compressed (Content-Encoding: %.64s), and compressed bodies are not taken", coding)
	}
}

const jsonHelp = "send JSON, like {\"name\":\"orders\"}; all bodies are described at /api/v1/openapi.json"

// notJSON tells a client what is wrong with its JSON, next what to send, and fields the names that there are.
func notJSON(err error, next string, fields ...string) error {
	switch {
	case as[*http.MaxBytesError](err), as[*frame.Refusal](err):
		return err
	case errors.Is(err, io.EOF):
		return badRequest(next, "the body is empty, and JSON is wanted")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest(next, "the body ends in the middle of its JSON")
	}
	const likeThis = "write the time like 2026-01-02T15:04:05Z"
	if e, ok := errors.AsType[*time.ParseError](err); ok {
		return badRequest(likeThis, "%.64q is no time", strings.Trim(e.Value, `"`))
	}
	if strings.HasPrefix(err.Error(), "Time.UnmarshalJSON: ") {
		return badRequest(likeThis, "a time is a JSON string")
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badRequest(next, "%s", wrongType(e))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badRequest(next, "the body is not JSON: %s", wrongSyntax(e))
	}
	if quoted, is := strings.CutPrefix(err.Error(), "json: unknown field "); is {
		return unknownField(strings.Trim(quoted, `"`), next, fields)
	}
	return badRequest(next, "the body is not what is wanted: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// otherFields are fields of events as the libraries of Event Hubs call them, with what they are here. By its
// letters alone partitionKey is nearest to partition, which is another thing.
var otherFields = map[string]string{
	"partitionkey":          "key",
	"applicationproperties": "properties",
	"systemproperties":      "system",
	"sequencenumber":        "sequence",
	"enqueuedtime":          "enqueued",
}

// otherField is what a field of another program is called here, however it parts its words; empty where the value
// has no such thing.
func otherField(name string, fields []string) string {
	here := otherFields[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))]
	if !slices.Contains(fields, here) {
		return ""
	}
	return here
}

// unknownField names the field that was probably meant.
func unknownField(name, next string, fields []string) error {
	if near := cmp.Or(otherField(name, fields), config.DidYouMean(name, fields)); near != "" {
		return badRequest(next, "unknown field %.64q: did you mean %q?", name, near)
	}
	return badRequest(next, "unknown field %.64q", name)
}

// wrongType says which value is another than is wanted.
func wrongType(e *json.UnmarshalTypeError) string {
	// The names of embedded types are no part of the JSON, whose names begin in lower case.
	path := slices.DeleteFunc(strings.Split(e.Field, "."), func(name string) bool { return name == "" || unicode.IsUpper(rune(name[0])) })
	what := "the body"
	if len(path) > 0 {
		what = fmt.Sprintf("field %q", strings.Join(path, "."))
	}
	given := "a JSON " + e.Value
	if number, is := strings.CutPrefix(e.Value, "number "); is {
		given = number
	}
	return fmt.Sprintf("%s cannot be %s: %s is wanted", what, given, wanted(e.Type))
}

// wanted names what JSON has for a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array […]"
	case reflect.Struct, reflect.Map:
		return "an object {…}"
	}
	return "a whole number" // of those that can be refused, only these are left
}

// wrongSyntax says where a body stops being JSON. The decoder's words begin with the character there.
func wrongSyntax(e *json.SyntaxError) string {
	text, is := strings.CutPrefix(e.Error(), "invalid character ")
	char, _, found := strings.Cut(text, "' ")
	if !is || !found {
		return fmt.Sprintf("it is wrong at byte %d", e.Offset)
	}
	if char = strings.TrimPrefix(char, "'"); e.Offset <= 1 {
		return "it begins with " + char
	}
	return fmt.Sprintf("there is %s at byte %d, which cannot be there", char, e.Offset)
}

// fieldNames are the names that a value may have in JSON, at any depth.
func fieldNames(t reflect.Type) []string {
	var names []string
	seen := map[reflect.Type]bool{}
	var add func(reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" {
				names = append(names, name)
			}
			add(f.Type)
		}
	}
	add(t)
	return names
}
