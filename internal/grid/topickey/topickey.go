// Package topickey checks what publishers show to a grid topic: access keys and the shared-access
// signatures made with them, in every spelling that the official SDKs use. It is pure.
package topickey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// keyBytes is how much is random in a key of ours, as in Event Grid's.
const keyBytes = 32

// New makes a key: 32 random bytes in base64.
func New() string {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

// Equal compares a key with the topic's, in constant time. An empty one equals none.
//
// Digests are compared, not texts: the time taken shows neither the length of a key nor which
// of them fits.
func Equal(given string, keys ...string) bool {
	sum := sha256.Sum256([]byte(given))
	found := 0
	for _, key := range keys {
		if key == "" {
			continue
		}
		want := sha256.Sum256([]byte(key))
		found |= subtle.ConstantTimeCompare(sum[:], want[:])
	}
	return found == 1
}

// secret is the bytes that sign for a key: what its base64 stands for, since that is what every
// SDK signs with; padding may be missing and the alphabet may be that of URLs. A key that an
// operator chose and that is no base64 signs as the bytes it is: there is no other reading of
// it, so nothing is guessed.
func secret(key string) []byte {
	text := strings.TrimRight(key, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if b, err := encoding.DecodeString(text); err == nil && len(b) > 0 {
			return b
		}
	}
	return []byte(key)
}
