package filter

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// foldRune gives one rune for all that differ in case only: the lower one in ASCII, else the
// first of them.
func foldRune(r rune) rune {
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	if 'A' <= first && first <= 'Z' {
		first += 'a' - 'A'
	}
	return first
}

// unfolded finds the first byte that folding may change; -1 if none does.
func unfolded(text []byte) int {
	for i, c := range text {
		if c-'A' <= 'Z'-'A' || c >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

// appendFolded writes text without its case. Bytes that are no UTF-8 become U+FFFD, as they
// do where JSON is decoded.
func appendFolded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c-'A' <= 'Z'-'A' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		dst = utf8.AppendRune(dst, foldRune(r))
		i += size
	}
	return dst
}

func foldString(text string) string { return string(appendFolded(nil, []byte(text))) }

// appendUnescaped writes the inside of a JSON string as plain text.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		if raw[i+1] == 'u' {
			r, size := unicodeEscape(raw[i:])
			dst = utf8.AppendRune(dst, r)
			raw = raw[i+size:]
			continue
		}
		dst = append(dst, unescapeByte(raw[i+1]))
		raw = raw[i+2:]
	}
}

func unescapeByte(c byte) byte {
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
	}
	return c
}

// unicodeEscape reads the \u that raw begins with, and the one behind it if both make one
// rune, and says how many bytes that were.
func unicodeEscape(raw []byte) (rune, int) {
	first, ok := hexEscape(raw)
	if !ok {
		return utf8.RuneError, 2
	}
	if first < 0xD800 || first > 0xDFFF {
		return first, 6
	}
	second, ok := hexEscape(raw[6:])
	if !ok || first > 0xDBFF || second < 0xDC00 || second > 0xDFFF {
		return utf8.RuneError, 6
	}
	return (first-0xD800)<<10 + (second - 0xDC00) + 0x10000, 12
}

func hexEscape(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range raw[2:6] {
		digit := rune(0)
		switch {
		case isDigit(c):
			digit = rune(c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			digit = rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
		r = r<<4 | digit
	}
	return r, true
}

// hasPrefix and hasSuffix compare bytes with a string without a copy of either.

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

func hasSuffix(text []byte, suffix string) bool {
	return len(text) >= len(suffix) && string(text[len(text)-len(suffix):]) == suffix
}
