package filter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The oracle is the table of operators, slow and plain: it decodes everything, and shares no
// code with the package. It takes filters that are allowed only.

// members is a decoded object; its order matters where names differ in case only.
type members []struct {
	name  string
	value any
}

// undefined is what a missing key has.
type undefined struct{}

func oracleMatch(t fataler, cfg Config, e *schema.Envelope) bool {
	if len(cfg.EventTypes) > 0 && !(len(cfg.EventTypes) == 1 && strings.EqualFold(cfg.EventTypes[0], "All")) {
		if e.Type == nil || !slices.ContainsFunc(cfg.EventTypes, func(s string) bool { return strings.EqualFold(s, string(e.Type)) }) {
			return false
		}
	}
	begins, ends := foldedPrefix, foldedSuffix
	if cfg.SubjectCaseSensitive {
		begins, ends = strings.HasPrefix, strings.HasSuffix
	}
	if cfg.SubjectBeginsWith != "" && (e.Subject == nil || !begins(string(e.Subject), cfg.SubjectBeginsWith)) {
		return false
	}
	if cfg.SubjectEndsWith != "" && (e.Subject == nil || !ends(string(e.Subject), cfg.SubjectEndsWith)) {
		return false
	}
	for _, c := range cfg.Advanced {
		if !oracleHolds(t, c, cfg.Arrays, oracleValue(t, e, c.Key)) {
			return false
		}
	}
	return true
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func oracleHolds(t fataler, c Condition, arrays bool, value any) bool {
	isNothing := value == nil || value == undefined{}
	switch c.Operator {
	case "IsNullOrUndefined":
		return isNothing
	case "IsNotNull":
		return !isNothing
	}
	positive := strings.Replace(c.Operator, "Not", "", 1)
	negative := positive != c.Operator
	if isNothing {
		return slices.Contains([]string{"NumberNotIn", "NumberNotInRange", "StringNotIn"}, c.Operator)
	}
	list, isList := value.([]any)
	if !isList {
		hit, fits := oracleCompare(t, positive, c, value)
		return fits && hit != negative
	}
	if !arrays {
		return false
	}
	for _, element := range list {
		if hit, fits := oracleCompare(t, positive, c, element); fits && hit {
			return !negative
		}
	}
	return negative
}

// oracleCompare compares one value, and tells whether it is of the operator's type.
func oracleCompare(t fataler, operator string, c Condition, value any) (hit, fits bool) {
	t.Helper()
	var operands any
	if c.Value != nil {
		operands = decode(t, c.Value)
	} else {
		operands = decode(t, c.Values)
	}
	switch {
	case operator == "BoolEquals":
		b, ok := scalar(value).(bool)
		return ok && b == operands.(bool), ok
	case strings.HasPrefix(operator, "String"):
		s, ok := asText(value)
		return ok && slices.ContainsFunc(operands.([]any), func(o any) bool { return compareTexts(operator, s, o.(string)) }), ok
	}
	n, ok := scalar(value).(json.Number)
	if !ok {
		return false, false
	}
	list, isList := operands.([]any)
	if !isList {
		list = []any{operands}
	}
	return slices.ContainsFunc(list, func(o any) bool { return compareNumbers(operator, rat(t, n), t, o) }), true
}

func compareTexts(operator, s, operand string) bool {
	switch operator {
	case "StringIn":
		return strings.EqualFold(s, operand)
	case "StringBeginsWith":
		return foldedPrefix(s, operand)
	case "StringEndsWith":
		return foldedSuffix(s, operand)
	}
	runes, n := []rune(s), utf8.RuneCountInString(operand)
	for i := 0; i+n <= len(runes); i++ {
		if strings.EqualFold(string(runes[i:i+n]), operand) {
			return true
		}
	}
	return false
}

func foldedPrefix(s, prefix string) bool {
	runes, n := []rune(s), utf8.RuneCountInString(prefix)
	return len(runes) >= n && strings.EqualFold(string(runes[:n]), prefix)
}

func foldedSuffix(s, suffix string) bool {
	runes, n := []rune(s), utf8.RuneCountInString(suffix)
	return len(runes) >= n && strings.EqualFold(string(runes[len(runes)-n:]), suffix)
}

func compareNumbers(operator string, n *big.Rat, t fataler, operand any) bool {
	if ends, ok := operand.([]any); ok {
		return n.Cmp(rat(t, ends[0].(json.Number))) >= 0 && n.Cmp(rat(t, ends[1].(json.Number))) <= 0
	}
	order := n.Cmp(rat(t, operand.(json.Number)))
	switch operator {
	case "NumberIn":
		return order == 0
	case "NumberLessThan":
		return order < 0
	case "NumberGreaterThan":
		return order > 0
	case "NumberLessThanOrEquals":
		return order <= 0
	}
	return order >= 0
}

func rat(t fataler, n json.Number) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		t.Fatalf("%q is no number", n)
	}
	return r
}

// attributeValue is one of the envelope's, whose numbers and booleans are also texts.
type attributeValue struct {
	value any
	raw   string
}

func scalar(value any) any {
	if a, ok := value.(attributeValue); ok {
		return a.value
	}
	return value
}

func asText(value any) (string, bool) {
	a, isAttribute := value.(attributeValue)
	s, ok := scalar(value).(string)
	switch scalar(value).(type) {
	case bool, json.Number:
		return a.raw, isAttribute
	}
	return s, ok
}

func oracleValue(t fataler, e *schema.Envelope, path string) any {
	t.Helper()
	parts := strings.Split(path, ".")
	if !strings.EqualFold(parts[0], "data") {
		return oracleAttribute(t, e, strings.ToLower(path))
	}
	if e.Data == nil {
		return undefined{}
	}
	value := decode(t, e.Data)
	for _, part := range parts[1:] {
		object, ok := value.(members)
		if !ok {
			return undefined{}
		}
		value = oracleMember(object, part)
	}
	return value
}

func oracleMember(object members, name string) any {
	for _, m := range object {
		if m.name == name {
			return m.value
		}
	}
	for _, m := range object {
		if strings.EqualFold(m.name, name) {
			return m.value
		}
	}
	return undefined{}
}

func oracleAttribute(t fataler, e *schema.Envelope, name string) any {
	texts := map[string][]byte{"id": e.ID, "subject": e.Subject, "type": e.Type, "eventtype": e.Type, "dataversion": append([]byte{}, e.DataVersion...)}
	if e.Topic != "" {
		texts["topic"], texts["source"] = []byte(e.Topic), []byte(e.Topic)
	}
	if e.Form == schema.CloudEventForm {
		texts["source"] = e.Source
		texts["dataversion"] = e.DataSchema
		for _, x := range e.Extensions {
			// What differs from CloudEvents' own names by case only is not to be had.
			if strings.EqualFold(string(x.Name), name) && name != "type" {
				return oracleExtension(t, x.Value)
			}
		}
	}
	if text := texts[name]; text != nil {
		return string(text)
	}
	return undefined{}
}

func oracleExtension(t fataler, raw []byte) any {
	value := decode(t, raw)
	switch value.(type) {
	case nil, []any, members:
		return value
	}
	return attributeValue{value, string(raw)}
}

func decode(t fataler, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	value, err := decodeNext(d)
	if err != nil {
		t.Fatalf("decode %q: %v", raw, err)
	}
	return value
}

func decodeNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := members{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			object = append(object, struct {
				name  string
				value any
			}{name.(string), value})
		}
		_, err := d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

func mustCompile(t testing.TB, cfg Config) *Filter {
	t.Helper()
	f := testkit.Value(Compile(cfg))(t)
	return f
}

// condition makes one from its parts; operand is JSON.
func condition(operator, key, operand string) Condition {
	c := Condition{Operator: operator, Key: key}
	switch findOperator(operator).takes {
	case nothing:
	case oneBool, oneNumber:
		c.Value = json.RawMessage(operand)
	default:
		c.Values = json.RawMessage(operand)
	}
	return c
}

func show(c Condition) string { return fmt.Sprintf("%s %s %s%s", c.Key, c.Operator, c.Value, c.Values) }
