package meta_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

func TestCheckKey(t *testing.T) {
	long := strings.Repeat("k", meta.MaxKeyBytes)
	tests := []struct {
		name  string
		key   string
		valid bool
	}{
		{"one segment is a key", "hubs", true},
		{"segments are joined by a slash", "hubs/orders/groups/$Default", true},
		{"blanks, dots and wildcards are plain characters", "a b/c.d/*/>", true},
		{"dots alone are a segment like any other", "../.", true},
		{"characters of any script are allowed", "größe/日本/🌳", true},
		{"the replacement character is valid text", "a\uFFFDb", true},
		{"a key may have the greatest length", long, true},
		{"a key must not be longer", long + "k", false},
		{"a key must not be empty", "", false},
		{"a lone slash has empty segments", "/", false},
		{"a leading slash makes an empty segment", "/a", false},
		{"a trailing slash makes an empty segment", "a/", false},
		{"two slashes make an empty segment", "a//b", false},
		{"a zero byte is a control character", "a\x00b", false},
		{"a line feed is a control character", "a/b\n", false},
		{"delete is a control character", "a\x7f", false},
		{"so are those above ASCII", "a\u0085", false},
		{"broken UTF-8 is no text", "a/\xff", false},
		{"half a character is no text", "a/\xe6\x97", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkVerdict(t, meta.CheckKey(test.key), test.valid)
		})
	}
}

func TestCheckPrefix(t *testing.T) {
	long := strings.Repeat("k", meta.MaxKeyBytes)
	tests := []struct {
		name   string
		prefix string
		valid  bool
	}{
		{"the empty prefix means everything", "", true},
		{"a key with a slash behind it is a prefix", "hubs/orders/", true},
		{"a prefix as long as the longest key is allowed", long + "/", true},
		{"a prefix longer than any key is not", long + "k/", false},
		{"a prefix must end in a slash", "hubs", false},
		{"a lone slash is no prefix", "/", false},
		{"a prefix must not begin with a slash", "/hubs/", false},
		{"a prefix must not have an empty segment", "hubs//", false},
		{"a prefix must not have control characters", "hubs\t/", false},
		{"a prefix must be valid UTF-8", "\xc0/", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkVerdict(t, meta.CheckPrefix(test.prefix), test.valid)
		})
	}
}

func TestCheckValue(t *testing.T) {
	tests := []struct {
		name  string
		value []byte
		valid bool
	}{
		{"no value is a value", nil, true},
		{"any bytes are allowed", []byte{0, 0xff, '\n'}, true},
		{"a value may have the greatest length", make([]byte, meta.MaxValueBytes), true},
		{"a value must not be longer", make([]byte, meta.MaxValueBytes+1), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkVerdict(t, meta.CheckValue(test.value), test.valid)
		})
	}
}

func checkVerdict(t *testing.T, err error, valid bool) {
	t.Helper()
	if valid && err != nil {
		t.Errorf("refused: %v", err)
	}
	if !valid && !errors.Is(err, meta.ErrInvalid) {
		t.Errorf("got %v, want an error that wraps ErrInvalid", err)
	}
}

// FuzzCheckKey compares the verdict with the rule written down a second time, byte by
// byte, and holds keys and prefixes to each other.
func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"", "/", "a", "a/b", "a//b", "a/\x00", "\xff", "ü/日本", "a\u009f/b", strings.Repeat("ab/", 400)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := meta.CheckKey(key)
		if got, want := err == nil, plainlyValid(key); got != want {
			t.Errorf("CheckKey(%q) = %v, want valid %t", key, err, want)
		}
		if err != nil && !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("CheckKey(%q) = %v, which does not wrap ErrInvalid", key, err)
		}
		if got := meta.CheckPrefix(key+"/") == nil; got != (err == nil) {
			t.Errorf("key %q valid: %t, as a prefix: %t", key, err == nil, got)
		}
	})
}

func plainlyValid(key string) bool {
	if len(key) > 1024 || !utf8.ValidString(key) {
		return false
	}
	before := '/'
	for _, r := range key {
		if r == '/' && before == '/' || r < 0x20 || r >= 0x7f && r < 0xa0 {
			return false
		}
		before = r
	}
	return before != '/'
}
