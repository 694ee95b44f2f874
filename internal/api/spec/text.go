package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/grid/schema"
)

// Set reads a text, as a flag or a configuration file has it, into a field of a definition, which
// is a pointer to its request. A list gets one more element.
func (f Field) Set(definition any, text string) error {
	if f.set != nil {
		return f.set(definition, text)
	}
	return setText(f.value(definition), text)
}

// SetEntry adds an entry to a field that is a map.
func (f Field) SetEntry(definition any, key, text string) {
	v := f.value(definition)
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(text))
}

// SetJSON reads a JSON value into a field; where that is a list of objects, it is one more element.
func (f Field) SetJSON(definition any, value []byte) error {
	v := f.value(definition)
	to := v
	if more := v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage](); more {
		to = reflect.New(v.Type().Elem()).Elem()
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to.Addr().Interface()); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if to != v {
		v.Set(reflect.Append(v, to))
	}
	return nil
}

// Clear makes a list or map that was not given an empty one, which says that there are to be none.
// An object is made, too.
func (f Field) Clear(definition any) {
	v := f.value(definition)
	switch {
	case v.Kind() == reflect.Slice && v.IsNil():
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Map && v.IsNil():
		v.Set(reflect.MakeMap(v.Type()))
	case v.Kind() == reflect.Pointer && v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
	}
}

// Kind is the Go type of a field of a definition, without the pointer that says that it was given.
func (d Definition) Kind(f Field) reflect.Type {
	t := f.value(reflect.New(d.Type).Interface()).Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Repeated tells whether a field has many values.
func (d Definition) Repeated(f Field) bool {
	kind := d.Kind(f)
	return kind.Kind() == reflect.Map || kind.Kind() == reflect.Slice && kind != reflect.TypeFor[json.RawMessage]() &&
		kind != reflect.TypeFor[admin.Statuses]() // which are written with commas between
}

// value finds the field; objects on the way to it are made.
func (f Field) value(definition any) reflect.Value {
	v := reflect.ValueOf(definition).Elem()
	for name := range strings.SplitSeq(f.Name, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		i := slices.Index(Names(v.Type()), name)
		if i < 0 {
			panic(fmt.Sprintf("spec: %s has no field %s", v.Type(), f.Name)) // a test sets each field
		}
		v = v.Field(i)
	}
	return v
}

// Names are the keys of a request's fields, in JSON and in the configuration file. A key tag names
// what JSON does not have.
func Names(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		tag := t.Field(i).Tag
		names[i], _, _ = strings.Cut(tag.Get("json"), ",")
		if key := tag.Get("key"); key != "" {
			names[i] = key
		}
	}
	return names
}

// Check judges a value, as a text, by the row alone: its range, its words and its form. Nothing
// stands for the default.
func (f Field) Check(text string) error {
	if text == "" {
		return nil
	}
	if len(f.OneOf) > 0 && !slices.ContainsFunc(f.OneOf, func(word string) bool { return strings.EqualFold(word, text) }) {
		return &ValueError{Value: fmt.Sprintf("%.64q", text), Reason: "give " + either(f.OneOf)}
	}
	if f.check != nil {
		if err := f.check(text); err != nil {
			return err
		}
	}
	if f.Bounded() && !f.within(text) {
		reason := "give " + f.span()
		if f.Zero != "" {
			reason += "; 0: " + f.Zero
		}
		return &ValueError{Value: fmt.Sprintf("%.64s", text), Reason: reason}
	}
	return nil
}

// within tells whether a value is in the range; what cannot be read is refused elsewhere.
func (f Field) within(text string) bool {
	if f.Length != 0 {
		return utf8.RuneCountInString(text) <= f.Length
	}
	if f.Least != 0 || f.Most != 0 {
		d, err := quantity.ParseSigned(text)
		return err != nil || d == 0 || (f.Least == 0 || d >= f.Least) && d <= f.Most
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if f.Value == "size" && err != nil {
		size, err := quantity.ParseSize(text)
		return err != nil || float64(size) >= f.Min && float64(size) <= f.Max
	}
	return errors.Is(err, strconv.ErrSyntax) || n == 0 && f.Zero != "" || n >= f.Min && (f.Max == 0 || n <= f.Max) // nor NaN
}

// ValueError is a value that is out of its range.
type ValueError struct{ Value, Reason string }

func (e *ValueError) Error() string { return e.Value + ": " + e.Reason }

// Check judges all fields of a request by their rows and tells what is wrong, by name. A number that
// is given as zero is a zero; nil is what was not given.
func (d Definition) Check(definition any) map[string]error {
	wrong := map[string]error{}
	for _, f := range d.Fields {
		for _, text := range f.texts(reflect.ValueOf(definition).Elem()) {
			if err := f.Check(text); err != nil {
				wrong[f.Name] = err
			}
		}
	}
	return wrong
}

// CheckFirst gives the first of what Check finds, in the order of the rows, with its name.
func (d Definition) CheckFirst(definition any) error {
	wrong := d.Check(definition)
	for _, f := range d.Fields {
		if err := wrong[f.Name]; err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// CheckValue judges a stored value by the row of a name. Zero stands for the default.
func (d Definition) CheckValue(name string, value any) error {
	f, ok := d.Field(name)
	if !ok {
		panic(fmt.Sprintf("spec: %s has no field %s", d.Name, name))
	}
	v := reflect.ValueOf(value)
	text, _ := textOf(v)
	if wait, is := value.(time.Duration); is {
		text = quantity.FormatHours(wait)
	}
	if v.IsZero() {
		return nil
	}
	if err := f.Check(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// texts gives a field that has single values as texts; none if it was not given.
func (f Field) texts(v reflect.Value) []string {
	for name := range strings.SplitSeq(f.Name, ".") {
		if v = reflect.Indirect(v); !v.IsValid() || v.Kind() != reflect.Struct {
			return nil
		}
		v = v.Field(slices.Index(Names(v.Type()), name))
	}
	if list, is := v.Interface().([]string); is {
		return list
	}
	if v = reflect.Indirect(v); !v.IsValid() {
		return nil
	}
	if text, ok := textOf(v); ok {
		return []string{text}
	}
	return nil
}

func textOf(v reflect.Value) (text string, ok bool) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Float64:
		return formatNumber(v.Float()), true
	}
	return "", false
}

// setText reads a text by the type of the field.
func setText(v reflect.Value, text string) error {
	switch to := v.Addr().Interface().(type) {
	case **admin.Pull:
		return setPull(to, text)
	case *[]admin.Filter:
		*to = append(*to, admin.Filter(text))
		return nil
	case *admin.Headers:
		header, err := ParseHeader(text)
		*to = append(*to, header)
		return err
	case *admin.Statuses:
		return setStatuses(to, text)
	case *admin.Floors:
		status, least, found := strings.Cut(text, "=")
		if !found {
			return &ValueError{Value: strconv.Quote(text), Reason: "write it like 503=5s"}
		}
		return setEntry((*map[string]string)(to), status, least, nil)
	case *map[string]string:
		name, value, err := ParseHeaderLine(text)
		return setEntry(to, name, value, err)
	case *[]string:
		*to = append(*to, text)
		return nil
	case *json.RawMessage:
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("%.32q is no JSON", text)
		}
		*to = json.RawMessage(text)
		return nil
	case *admin.Retries:
		n, err := ParseRetries(text)
		*to = n
		return err
	}
	return setScalar(v, text)
}

func setScalar(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.Pointer:
		one := reflect.New(v.Type().Elem())
		if err := setText(one.Elem(), text); err != nil {
			return err
		}
		v.Set(one)
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return fmt.Errorf("%q is no number", text)
		}
		v.SetFloat(n)
	case reflect.Bool:
		b, err := ParseBool(text)
		if err != nil {
			return err
		}
		v.SetBool(b)
	default:
		return fmt.Errorf("%q: a single value is not wanted here", text)
	}
	return nil
}

// ParseBool reads true or false, and nothing else.
func ParseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

// setPull keeps what was said of the lock before.
func setPull(to **admin.Pull, text string) error {
	pull, err := ParseBool(text)
	switch {
	case err != nil:
		return err
	case !pull:
		*to = nil
	case *to == nil:
		*to = new(admin.Pull)
	}
	return nil
}

// setStatuses takes 400,413, or none, which is an empty list.
func setStatuses(to *admin.Statuses, text string) error {
	if *to == nil {
		*to = admin.Statuses{}
	}
	if text == "none" {
		return nil
	}
	for one := range strings.SplitSeq(text, ",") {
		status, err := strconv.Atoi(strings.TrimSpace(one))
		if err != nil {
			return fmt.Errorf("%q is no status: write them like 400,413, or none", one)
		}
		*to = append(*to, status)
	}
	return nil
}

func setEntry(to *map[string]string, name, value string, err error) error {
	if err != nil {
		return err
	}
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
	return nil
}

// cutHeader takes NAME=VALUE and "NAME: VALUE" apart. No name has either sign.
func cutHeader(text string) (name, value string, found bool) {
	at := strings.IndexAny(text, "=:")
	if at < 0 {
		return text, "", false
	}
	if value = text[at+1:]; text[at] == ':' {
		value = strings.TrimSpace(value)
	}
	return strings.TrimSpace(text[:at]), value, true
}

// ParseHeader reads NAME=VALUE, or NAME={path} for a field of the event. Its error repeats no
// value, which may be a secret.
func ParseHeader(pair string) (admin.Header, error) {
	name, value, found := cutHeader(pair)
	if !found {
		return admin.Header{}, fmt.Errorf("%q is no header: write it like X-Env=prod, or X-Region={data.region}", name)
	}
	if path, ok := strings.CutPrefix(value, "{"); ok && strings.HasSuffix(path, "}") {
		return admin.Header{Name: name, Field: strings.TrimSuffix(path, "}")}, nil
	}
	return admin.Header{Name: name, Value: value}, nil
}

// ParseHeaderLine reads the same, but for fields of an event. Its error repeats nothing, since all of it
// may be a secret.
func ParseHeaderLine(line string) (name, value string, err error) {
	name, value, found := cutHeader(line)
	if !found || name == "" {
		return "", "", fmt.Errorf("a header without a value: write it like Authorization=Bearer abc")
	}
	return name, value, nil
}

// ParseRetries reads a number of retries, or forever.
func ParseRetries(text string) (admin.Retries, error) {
	if strings.EqualFold(text, "forever") {
		return admin.Forever, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is neither a number from 0 on nor forever", text)
	}
	return admin.Retries(n), nil
}

// BreakerLeast and BreakerMost bound the time in which a breaker counts.
const (
	BreakerLeast = 100 * time.Millisecond
	BreakerMost  = 24 * time.Hour
)

// ParseBreaker reads "100/30s" as more than a hundred failures within thirty seconds, and "off" as
// -1.
func ParseBreaker(text string) (failures int, within time.Duration, err error) {
	if strings.EqualFold(text, "off") {
		return -1, 0, nil
	}
	number, window, found := strings.Cut(text, "/")
	failures, err = strconv.Atoi(strings.TrimSpace(number))
	if !found || err != nil || failures < 0 {
		return 0, 0, fmt.Errorf("%q: write it like 100/30s: more than a hundred failures within thirty seconds, or off", text)
	}
	within, err = quantity.ParseDuration(strings.TrimSpace(window))
	if err != nil || within < BreakerLeast || within > BreakerMost {
		return 0, 0, fmt.Errorf("%q: write it like 100/30s: the time behind the slash is %v to %v", text, BreakerLeast, quantity.FormatHours(BreakerMost))
	}
	if failures == 0 {
		return 0, 0, fmt.Errorf("%q: at least 1 failure has to be allowed, as 0 stands for the default", text)
	}
	return failures, within, nil
}

func isWait(text string) error {
	_, err := quantity.ParseSigned(text)
	return err
}

func isDuration(text string) error {
	_, err := quantity.ParseDuration(text)
	return err
}

func isSchema(text string) error {
	_, err := schema.ParseKind(text)
	return err
}

func isBreaker(text string) error {
	_, _, err := ParseBreaker(text)
	return err
}

// TimeIfAny shows a time; nil for the zero time.
func TimeIfAny(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
