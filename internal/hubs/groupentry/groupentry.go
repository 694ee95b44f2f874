// Package groupentry says what keys and values an entry of a consumer group may have, for every
// store alike. It is pure.
package groupentry

import (
	"errors"
	"fmt"
	"strings"
)

// MaxKeyBytes and MaxValueBytes bound an entry.
const (
	MaxKeyBytes   = 200
	MaxValueBytes = 16 << 10
)

// ErrInvalid: the key, prefix or value is not of the form that stores allow.
var ErrInvalid = errors.New("invalid entry")

// Check tells whether an entry may be stored. A step upwards in its key would be read as another key
// where keys are shown as paths; one that has such a key from before can still be read and removed.
func Check(key string, value []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return fmt.Errorf("entry %q: %w: no segment of a key is %q", key, ErrInvalid, segment)
		}
	}
	if len(value) > MaxValueBytes {
		return fmt.Errorf("entry %q: %w: its value has %d bytes, at most %d are allowed", key, ErrInvalid, len(value), MaxValueBytes)
	}
	return nil
}

// CheckKey tells whether a key is well formed: segments joined by '/', none empty.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return fmt.Errorf("entry %.64q: %w: keys have 1 to %d characters", key, ErrInvalid, MaxKeyBytes)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || strings.ContainsFunc(segment, forbidden) {
			return fmt.Errorf("entry %q: %w: keys are segments of letters, digits, '-', '_', '.', ':' and '$', joined by '/'", key, ErrInvalid)
		}
	}
	return nil
}

// CheckPrefix tells whether entries may be asked for with a prefix: empty, or a key and '/'.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	key, ends := strings.CutSuffix(prefix, "/")
	if !ends {
		return fmt.Errorf("prefix %.64q: %w: it is empty or ends in '/'", prefix, ErrInvalid)
	}
	return CheckKey(key)
}

func forbidden(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.:$", r)
}
