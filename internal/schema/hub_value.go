package schema

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/event"
)

// appendValue writes as JSON the body of a hub's event that is an AMQP value and no bytes.
// Types that JSON does not have become text; so does what a number there cannot express.
func appendValue(dst []byte, v any) []byte {
	if dst, ok := appendScalar(dst, v); ok {
		return dst
	}
	switch v := v.(type) {
	case []any:
		return appendList(dst, v)
	case event.Array:
		return appendList(dst, v.Values)
	case event.Map:
		return appendPairs(dst, v)
	case map[string]any:
		pairs := make(event.Map, 0, len(v))
		for _, name := range sortedKeys(v) {
			pairs = append(pairs, event.Pair{Key: name, Value: v[name]})
		}
		return appendPairs(dst, pairs)
	case event.Described:
		return appendValue(dst, v.Value)
	default:
		return appendQuoted(dst, fmt.Sprint(v))
	}
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func appendList(dst []byte, list []any) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, v)
	}
	return append(dst, ']')
}

// appendPairs writes an object; keys that are no text are spelled as text.
func appendPairs(dst []byte, pairs event.Map) []byte {
	dst = append(dst, '{')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if key := appendValue(nil, p.Key); isText(key) {
			dst = append(dst, key...)
		} else {
			dst = appendQuoted(dst, key)
		}
		dst = append(dst, ':')
		dst = appendValue(dst, p.Value)
	}
	return append(dst, '}')
}

// appendScalar writes a value that has no parts; it says false for others, and writes
// nothing.
func appendScalar(dst []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), true
	case bool:
		return strconv.AppendBool(dst, v), true
	case string:
		return appendQuoted(dst, v), true
	case event.Symbol:
		return appendQuoted(dst, string(v)), true
	case event.Char:
		return appendQuoted(dst, string(rune(v))), true
	case []byte:
		return appendBase64(dst, v), true
	case time.Time:
		return appendQuoted(dst, v.UTC().Format(time.RFC3339Nano)), true
	case [16]byte:
		return appendQuoted(dst, fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])), true
	case event.Decimal32:
		return appendQuoted(dst, hex.EncodeToString(v[:])), true
	case event.Decimal64:
		return appendQuoted(dst, hex.EncodeToString(v[:])), true
	case event.Decimal128:
		return appendQuoted(dst, hex.EncodeToString(v[:])), true
	default:
		return appendNumber(dst, v)
	}
}

func appendNumber(dst []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint64:
		return strconv.AppendUint(dst, v, 10), true
	case float32:
		return appendFloat(dst, float64(v), 32), true
	case float64:
		return appendFloat(dst, v, 64), true
	default:
		return dst, false
	}
}

func appendFloat(dst []byte, v float64, bits int) []byte {
	text := strconv.AppendFloat(nil, v, 'g', -1, bits)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return appendQuoted(dst, text)
	}
	return append(dst, text...)
}
