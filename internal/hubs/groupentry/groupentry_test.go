package groupentry

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestKeysAreSegmentsOfPlainLetters(t *testing.T) {
	for key, valid := range map[string]bool{
		"a": true, "presence/Host-1:80_x.y$z": true, "a/b/c": true, "a..b": true, "..": false, "a/../b": false, "a/.": false, strings.Repeat("k", 200): true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, "a b": false, "ä": false, "a\x00": false,
		"a\xff": false, "a%": false, "a*": false, strings.Repeat("k", 201): false,
	} {
		t.Run(key, func(t *testing.T) {
			if err := Check(key, nil); (err == nil) != valid || (err != nil && !errors.Is(err, ErrInvalid)) {
				t.Errorf("key %q: %v", key, err)
			}
		})
	}
}

func TestValuesAreBounded(t *testing.T) {
	testkit.Check(t, Check("a", make([]byte, MaxValueBytes)))
	testkit.ErrorIs(t, Check("a", make([]byte, MaxValueBytes+1)), ErrInvalid)
}

func TestPrefixesEndInASlash(t *testing.T) {
	for prefix, valid := range map[string]bool{
		"": true, "a/": true, "a/b/": true, "a": false, "/": false, "a//": false, "a b/": false,
	} {
		t.Run(prefix, func(t *testing.T) {
			if err := CheckPrefix(prefix); (err == nil) != valid {
				t.Errorf("prefix %q: %v", prefix, err)
			}
		})
	}
}
