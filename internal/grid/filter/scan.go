package filter

import "bytes"

// These walk over JSON without decoding it. Whoever stored an event has checked it; on what
// is no JSON they stop and say -1, or give something, but never panic.

func skipSpace(data []byte, at int) int {
	for at < len(data) {
		switch data[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// skipValue gives the index behind the value at an index.
func skipValue(data []byte, at int) int {
	if at >= len(data) {
		return -1
	}
	switch data[at] {
	case '"':
		return skipString(data, at)
	case '{', '[':
		return skipRest(data, at+1)
	}
	end := at
	for end < len(data) && !endsScalar(data[end]) {
		end++
	}
	if end == at {
		return -1
	}
	return end
}

func endsScalar(c byte) bool {
	switch c {
	case ',', '}', ']', ':', '"', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// skipString gives the index behind the string whose first quote is at an index.
func skipString(data []byte, at int) int {
	for from := at + 1; ; {
		i := bytes.IndexByte(data[from:], '"')
		if i < 0 {
			return -1
		}
		end := from + i
		slashes := 0
		for end-1-slashes > at && data[end-1-slashes] == '\\' {
			slashes++
		}
		if from = end + 1; slashes%2 == 0 {
			return from
		}
	}
}

// structural marks the bytes that matter for where an object or array ends.
var structural = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// skipRest gives the index behind the object or array that an index is in.
func skipRest(data []byte, at int) int {
	for depth := 1; at >= 0 && at < len(data); {
		c := data[at]
		if !structural[c] {
			at++
			continue
		}
		switch c {
		case '"':
			at = skipString(data, at)
			continue
		case '{', '[':
			depth++
		default:
			depth--
		}
		at++
		if depth == 0 {
			return at
		}
	}
	return -1
}

// nextElement gives the next element of an array from an index behind its bracket or behind
// an element, and the index behind it; nil and 0 if there is none.
func nextElement(data []byte, at int) ([]byte, int) {
	at = skipSpace(data, at)
	if at < len(data) && data[at] == ',' {
		at = skipSpace(data, at+1)
	}
	if at >= len(data) || data[at] == ']' {
		return nil, 0
	}
	end := skipValue(data, at)
	if end < 0 {
		return nil, 0
	}
	return data[at:end], end
}
