package amqpjson

import (
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// AppendValue writes any value. What is no AMQP value is the text that Go prints of it.
func AppendValue(dst []byte, v any, style Style) []byte {
	if with, ok := AppendScalar(dst, v, style); ok {
		return with
	}
	switch v := v.(type) {
	case []any:
		return appendList(dst, v, style)
	case wire.Array:
		return appendList(dst, v.Values, style)
	case wire.Map:
		return appendPairs(dst, v, style)
	case map[string]any:
		return appendMap(dst, v, style)
	case wire.Described:
		return appendDescribed(dst, v, style)
	}
	return AppendText(dst, fmt.Sprint(v), style)
}

func appendDescribed(dst []byte, d wire.Described, style Style) []byte {
	if style == Plain {
		return AppendValue(dst, d.Value, style)
	}
	dst = AppendValue(append(dst, `{"descriptor":`...), d.Descriptor, style)
	dst = AppendValue(AppendName(dst, "value"), d.Value, style)
	return append(dst, '}')
}

func appendList(dst []byte, list []any, style Style) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendValue(dst, v, style)
	}
	return append(dst, ']')
}

// appendPairs writes a map whose keys may be anything.
func appendPairs(dst []byte, m wire.Map, style Style) []byte {
	dst = append(dst, '{')
	for i, pair := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendKey(dst, pair.Key, style), ':')
		dst = AppendValue(dst, pair.Value, style)
	}
	return append(dst, '}')
}

func appendKey(dst []byte, key any, style Style) []byte {
	at := len(dst)
	dst = AppendValue(dst, key, style)
	if isText(key) || style == Plain && dst[at] == '"' {
		return dst
	}
	// The text of the JSON is written behind it, and then put in its place.
	end := len(dst)
	dst = AppendText(dst, dst[at:], style)
	return append(dst[:at], dst[end:]...)
}

func isText(v any) bool {
	switch v.(type) {
	case string, wire.Symbol:
		return true
	}
	return false
}

// appendMap writes the members in the order of their names, so that the same map always looks
// the same.
func appendMap(dst []byte, m map[string]any, style Style) []byte {
	var few [16]string // so many are sorted on the stack
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendText(dst, name, style), ':')
		dst = AppendValue(dst, m[name], style)
	}
	return append(dst, '}')
}
