package schema

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
)

// text is a JSON string without its quotes.
type text struct {
	raw     []byte
	escaped bool
}

// bytes is the text that is meant; a copy only if something was escaped.
func (t text) bytes() []byte {
	if !t.escaped {
		return t.raw
	}
	return unescape(t.raw)
}

// textOf is the text of a string's raw JSON, which is known to be valid.
func textOf(raw []byte) []byte {
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	return text{inner, bytes.IndexByte(inner, '\\') >= 0}.bytes()
}

// isText tells whether valid raw JSON is a string.
func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// unescape undoes the escapes of a valid string. Half of a surrogate pair becomes U+FFFD.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			n = len(raw)
		}
		out, raw = append(out, raw[:n]...), raw[n:]
		if len(raw) == 0 {
			break
		}
		if raw[1] == 'u' {
			c, size := escapedRune(raw)
			out, raw = utf8.AppendRune(out, c), raw[size:]
			continue
		}
		out, raw = append(out, unescaped(raw[1])), raw[2:]
	}
	return out
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return c
	}
}

// escapedRune reads \uXXXX, and the other half of a pair that follows.
func escapedRune(raw []byte) (c rune, size int) {
	c, _ = hex4(raw[2:])
	if !utf16.IsSurrogate(c) {
		return c, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		low, _ := hex4(raw[8:])
		if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var c rune
	for _, d := range b[:4] {
		n, ok := hexDigit(d)
		if !ok {
			return 0, false
		}
		c = c<<4 | rune(n)
	}
	return c, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}

// appendQuoted writes text as a JSON string. What is not valid UTF-8 becomes U+FFFD.
func appendQuoted[T string | []byte](dst []byte, t T) []byte {
	return amqpjson.AppendText(dst, t, amqpjson.Plain)
}

// appendMember writes a further member of an object, whose name needs no escapes, up to its
// value.
func appendMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// appendTextMember writes a member that is a string.
func appendTextMember[T string | []byte](dst []byte, name string, t T) []byte {
	return appendQuoted(appendMember(dst, name), t)
}

// appendRawMember writes a member whose value is JSON already.
func appendRawMember(dst []byte, name string, raw []byte) []byte {
	return append(appendMember(dst, name), raw...)
}
