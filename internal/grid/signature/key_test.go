package signature

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNew(t *testing.T) {
	for algorithm, prefixes := range map[string][2]string{HMAC: {"whsec_", "whsec_"}, Ed25519: {"whsk_", "whpk_"}} {
		t.Run(algorithm, func(t *testing.T) {
			key, other := made(t, algorithm), made(t, algorithm)
			if !strings.HasPrefix(key.Text, prefixes[0]) || !strings.HasPrefix(public(t, key), prefixes[1]) {
				t.Errorf("%s: %s", algorithm, prefixes)
			}
			if key.Text == other.Text || !key.Expires.IsZero() {
				t.Errorf("%s: two keys are the same, or expire", algorithm)
			}
		})
	}
	if _, err := New("rot13"); err == nil || !strings.Contains(err.Error(), "give hmac or ed25519") {
		t.Errorf("an unknown algorithm: %v", err)
	}
}

// A seed and the private key made of it are the same key.
func TestASeedIsAKey(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	short := Key{Text: encode(prefixPrivate, seed)}
	long := Key{Text: encode(prefixPrivate, ed25519.NewKeyFromSeed(seed))}
	testkit.Equal(t, public(t, short), public(t, long), "they have different public keys")
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	for _, tt := range []struct{ what, text, wrong string }{
		{"nothing", "", "give one of these"},
		{"no prefix", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "give one of these"},
		{"another prefix", "sk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "give one of these"},
		{"no base64", "whsec_!", "not base64"},
		{"an empty secret", "whsec_", "a secret of 0 bytes"},
		{"a short secret", encode(prefixSecret, make([]byte, 23)), "a secret of 23 bytes"},
		{"a long secret", encode(prefixSecret, make([]byte, 65)), "a secret of 65 bytes"},
		{"a short private key", encode(prefixPrivate, seed[1:]), "a private key of 31 bytes"},
		{"a private key with another's public half", encode(prefixPrivate, append(bytes.Clone(seed), seed...)), "second half"},
		{"a short public key", encode(prefixPublic, seed[1:]), "a public key of 31 bytes"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if _, err := (Key{Text: tt.text}).Public(); err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("got %v, want %q", err, tt.wrong)
			}
		})
	}
}
