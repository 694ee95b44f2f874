package topickey

import (
	"encoding/base64"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G12: keys look like Event Grid's, and no two are the same.
func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		key := New()
		b, err := base64.StdEncoding.DecodeString(key)
		if err != nil || len(b) != 32 || seen[key] {
			t.Fatalf("%q: %d bytes, %v, seen %v", key, len(b), err, seen[key])
		}
		seen[key] = true
	}
}

// G12: both keys are good at any time.
func TestEqual(t *testing.T) {
	tests := []struct {
		what  string
		given string
		keys  []string
		want  bool
	}{
		{"the first", "one", []string{"one", "two"}, true},
		{"the second", "two", []string{"one", "two"}, true},
		{"neither", "three", []string{"one", "two"}, false},
		{"another case", "One", []string{"one"}, false},
		{"only the beginning", "on", []string{"one"}, false},
		{"more than it", "one ", []string{"one"}, false},
		{"an empty one of a topic without keys", "", nil, false},
		{"an empty one of a topic with an empty key", "", []string{"", "two"}, false},
		{"one beside an empty key", "two", []string{"", "two"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, Equal(tt.given, tt.keys...), tt.want)
		})
	}
}

// What signs for a key, however it is written.
func TestSecret(t *testing.T) {
	tests := []struct {
		what, key string
		want      []byte
	}{
		{"base64", "MDEyMw==", []byte("0123")},
		{"without padding", "MDEyMw", []byte("0123")},
		{"the alphabet of URLs", "-_-_", []byte{0xfb, 0xff, 0xbf}},
		{"the usual one", "+/+/", []byte{0xfb, 0xff, 0xbf}},
		{"no base64: a character that it does not have", "correct horse", []byte("correct horse")},
		{"no base64: a length that it does not have", "abcde", []byte("abcde")},
		{"nothing but padding", "==", []byte("==")},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Slices(t, secret(tt.key), tt.want)
		})
	}
}
