package httpapi

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// appendValue writes any AMQP value as the JSON that comes closest. JSON has fewer
// types: bytes are base64, times and UUIDs text, decimals the hex of their encoding.
// Numbers keep their kind, a double being written with a point or an exponent.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return appendText(dst, v)
	case wire.Symbol:
		return appendText(dst, string(v))
	case wire.Char:
		return appendText(dst, string(rune(v)))
	case []byte:
		return appendBase64(dst, v)
	case time.Time:
		dst = append(dst, '"')
		dst = v.UTC().AppendFormat(dst, timeFormat)
		return append(dst, '"')
	case wire.UUID:
		return appendUUID(dst, v)
	case wire.Decimal32:
		return appendHex(dst, v[:])
	case wire.Decimal64:
		return appendHex(dst, v[:])
	case wire.Decimal128:
		return appendHex(dst, v[:])
	}
	if with, ok := appendNumber(dst, v); ok {
		return with
	}
	return appendCompound(dst, v)
}

func appendNumber(dst []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
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
	}
	return dst, false
}

func appendCompound(dst []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		return appendList(dst, v)
	case wire.Array:
		return appendList(dst, v.Values)
	case wire.Map:
		return appendPairs(dst, v)
	case map[string]any:
		// A map without a field's name before it; the comma goes.
		at := len(dst)
		dst = appendMapField(dst, "", v)
		if len(dst) == at {
			return append(dst, "{}"...)
		}
		return append(dst[:at], dst[at+len(`,"":`):]...)
	case wire.Described:
		dst = append(dst, `{"descriptor":`...)
		dst = appendValue(dst, v.Descriptor)
		dst = append(dst, `,"value":`...)
		dst = appendValue(dst, v.Value)
		return append(dst, '}')
	}
	return appendText(dst, fmt.Sprint(v))
}

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

// appendPairs writes a map whose keys may be anything: what is no text is named by
// its JSON.
func appendPairs(dst []byte, m wire.Map) []byte {
	dst = append(dst, '{')
	for i, pair := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch key := pair.Key.(type) {
		case string:
			dst = appendText(dst, key)
		case wire.Symbol:
			dst = appendText(dst, string(key))
		default:
			dst = appendText(dst, string(appendValue(nil, key)))
		}
		dst = append(dst, ':')
		dst = appendValue(dst, pair.Value)
	}
	return append(dst, '}')
}

// appendFloat keeps a float a float: 1 is written 1.0, so that it is sent back as
// what it was. JSON has no word for what is not finite.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, bits)
	for _, c := range dst[at:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

func appendUUID(dst []byte, id wire.UUID) []byte {
	dst = append(dst, '"')
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return append(dst, '"')
}

func appendHex(dst, data []byte) []byte {
	dst = append(dst, '"')
	dst = hex.AppendEncode(dst, data)
	return append(dst, '"')
}

// appendText writes a JSON string. What is not valid UTF-8 becomes U+FFFD.
func appendText[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[from:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			from = i
			continue
		}
		i += size
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
