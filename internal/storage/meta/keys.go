package meta

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckKey reports, by an error that wraps ErrInvalid, why a text cannot be a key: it
// is 1 to MaxKeyBytes bytes of valid UTF-8, segments joined by '/', none of them
// empty, without control characters. Every other character is allowed, also those
// that mean something elsewhere: blanks, dots, wildcards.
func CheckKey(key string) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: key has %d bytes, at most %d are allowed", ErrInvalid, len(key), MaxKeyBytes)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if fault := segmentFault(segment); fault != "" {
			return fmt.Errorf("%w: key %q %s", ErrInvalid, key, fault)
		}
	}
	return nil
}

// CheckPrefix reports, by an error that wraps ErrInvalid, why a text cannot be the
// prefix of a list or watch: it is empty, or a key with a '/' behind it.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	key, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return fmt.Errorf("%w: prefix %q does not end in '/'", ErrInvalid, prefix)
	}
	return CheckKey(key)
}

// CheckValue reports, by an error that wraps ErrInvalid, that a value is too large.
func CheckValue(value []byte) error {
	if len(value) > MaxValueBytes {
		return fmt.Errorf("%w: value has %d bytes, at most %d are allowed", ErrInvalid, len(value), MaxValueBytes)
	}
	return nil
}

// segmentFault says what is wrong with a segment, in words that follow the key; empty
// if nothing is.
func segmentFault(segment string) string {
	switch {
	case segment == "":
		return "has an empty segment"
	case !utf8.ValidString(segment):
		return "is not valid UTF-8"
	case strings.ContainsFunc(segment, unicode.IsControl):
		return "has a control character"
	}
	return ""
}
