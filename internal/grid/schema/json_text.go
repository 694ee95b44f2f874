package schema

import (
	"bytes"
	"strings"
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
	return AppendUnescaped(make([]byte, 0, len(t.raw)), t.raw)
}

// textOf is the text of a string's raw JSON, which is known to be valid.
func textOf(raw []byte) []byte {
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	return text{inner, bytes.IndexByte(inner, '\\') >= 0}.bytes()
}

// isText says whether valid raw JSON is a string.
func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// AppendUnescaped writes the inside of a JSON string as plain text. Half of a surrogate pair, and
// what is no escape, becomes U+FFFD.
func AppendUnescaped(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 || n+1 == len(raw) {
			return append(dst, raw...)
		}
		dst, raw = append(dst, raw[:n]...), raw[n:]
		if raw[1] == 'u' {
			c, size := escapedRune(raw)
			dst, raw = utf8.AppendRune(dst, c), raw[size:]
			continue
		}
		c := raw[1]
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		dst, raw = append(dst, c), raw[2:]
	}
}

// escapedRune reads \uXXXX, and the other half of a pair that follows.
func escapedRune(raw []byte) (c rune, size int) {
	c, ok := hex4(raw[2:])
	if !ok {
		return utf8.RuneError, 2
	}
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

// appendMember writes a further member of an object, whose name needs no escapes, up to its value.
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
