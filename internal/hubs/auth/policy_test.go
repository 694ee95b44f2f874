package auth

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestPolicyNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "Read.Only-1_x9": true, strings.Repeat("a", 64): true, RootPolicy: true,
		"": false, strings.Repeat("a", 65): false, "-a": false, "a-": false, ".": false, "a b": false, "a/b": false,
		"häuser": false, "a\u0141b": false, "a\xffb": false, "a;b": false, "a\x00b": false,
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckPolicyName(name); (err == nil) != want {
				t.Errorf("%q: %v", name, err)
			}
		})
	}
}

// H9: keys that are known, can be guessed or fit into no connection string are refused,
// and no refusal tells the key.
func TestChosenKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"0123456789abcdef": true, strings.Repeat("x", 256): true, "with=base64/signs+in==": true,
		"": false, "0123456789abcde": false, strings.Repeat("x", 257): false, DevelopmentKey: false,
		"0123456789;abcdef": false, "0123456789 abcdef": false, "0123456789äbcdef": false, "0123456789\tabcdef": false,
	} {
		t.Run(key, func(t *testing.T) {
			err := CheckKey(key)
			testkit.Equal(t, (err == nil), want, "%q: %v", key, err)
			if err != nil && key != "" && strings.Contains(err.Error(), key) {
				t.Errorf("the error tells the key: %v", err)
			}
		})
	}
}
