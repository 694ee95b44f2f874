package filter

import (
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

// hasPrefix and hasSuffix compare bytes with a string without a copy of either.

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}

func hasSuffix(text []byte, suffix string) bool {
	return len(text) >= len(suffix) && string(text[len(text)-len(suffix):]) == suffix
}
