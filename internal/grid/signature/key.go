package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Key is one that signs: whsec_ and base64 for HMAC, whsk_ and base64 for ed25519 (seed of 32
// or private key of 64 bytes).
type Key struct {
	Text string `json:"key"`
	// Expires is when a key that was rotated out signs no more; zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Algorithms for New.
const (
	HMAC    = "hmac"
	Ed25519 = "ed25519"
)

// What the texts of keys begin with.
const (
	prefixSecret  = "whsec_"
	prefixPrivate = "whsk_"
	prefixPublic  = "whpk_"
)

// How long a secret may be says Standard Webhooks; ours have newSecret bytes.
const (
	minSecret = 24
	maxSecret = 64
	newSecret = ed25519.SeedSize
)

// New makes a key.
func New(algorithm string) (Key, error) {
	secret := make([]byte, newSecret)
	rand.Read(secret) // never fails
	switch algorithm {
	case HMAC:
		return Key{Text: encode(prefixSecret, secret)}, nil
	case Ed25519:
		return Key{Text: encode(prefixPrivate, ed25519.NewKeyFromSeed(secret))}, nil
	}
	return Key{}, fmt.Errorf("algorithm %.32q for signatures is unknown: give %s or %s", algorithm, HMAC, Ed25519)
}

// Public gives what a receiver needs to check: the same text for HMAC, whpk_ and base64 for
// ed25519.
func (k Key) Public() (string, error) {
	parsed, err := parse(k.Text)
	if err != nil {
		return "", err
	}
	if parsed.public != nil {
		return encode(prefixPublic, parsed.public), nil
	}
	return k.Text, nil
}

func encode(prefix string, b []byte) string {
	return prefix + base64.StdEncoding.EncodeToString(b)
}

// parsed is a key taken apart: the secret of HMAC, or of ed25519 the public key and, where it
// is known, the private one.
type parsed struct {
	secret  []byte
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

// parse reads a key. Its errors do not repeat the text: it may be a secret.
func parse(text string) (parsed, error) {
	kind, rest, found := strings.Cut(text, "_")
	if !found {
		return parsed{}, unknownKey()
	}
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
	if err != nil {
		return parsed{}, fmt.Errorf("what follows the first underscore of a key is not base64: give all of it, as it was made")
	}
	switch kind + "_" {
	case prefixSecret:
		if len(b) < minSecret || len(b) > maxSecret {
			return parsed{}, fmt.Errorf("a secret of %d bytes: give %d to %d, in base64", len(b), minSecret, maxSecret)
		}
		return parsed{secret: b}, nil
	case prefixPrivate:
		return parsePrivate(b)
	case prefixPublic:
		if len(b) != ed25519.PublicKeySize {
			return parsed{}, fmt.Errorf("a public key of %d bytes: give one of %d, in base64", len(b), ed25519.PublicKeySize)
		}
		return parsed{public: b}, nil
	}
	return parsed{}, unknownKey()
}

func unknownKey() error {
	return fmt.Errorf("a key begins with %s (HMAC), %s (ed25519, private) or %s (ed25519, public): give one of these",
		prefixSecret, prefixPrivate, prefixPublic)
}

// parsePrivate takes a seed, or a seed with the public key behind it, which must be its own: one
// that is not would sign what nobody can check.
func parsePrivate(b []byte) (parsed, error) {
	if len(b) != ed25519.SeedSize && len(b) != ed25519.PrivateKeySize {
		return parsed{}, fmt.Errorf("a private key of %d bytes: give a seed of %d or a key of %d, in base64", len(b), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
	if len(b) == ed25519.PrivateKeySize && !bytes.Equal(b, private) {
		return parsed{}, fmt.Errorf("the second half of a private key is not its public key: give it as it was made, or the seed alone")
	}
	return parsed{private: private, public: private.Public().(ed25519.PublicKey)}, nil
}
