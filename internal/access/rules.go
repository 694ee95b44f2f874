package access

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/auth"
)

// What a refused name or key is told.
const (
	nameRule = "use 1 to 64 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
	keyRule  = "use 16 to 256 characters of ASCII without blanks and ';', or none to get a fresh key"
)

const (
	maxNameBytes = 64
	minKeyBytes  = 16
	maxKeyBytes  = 256
)

// check tells whether a policy may be made as it is asked for.
func check(p Policy) error {
	if !wellFormed(p.Name) {
		return fmt.Errorf("%w: name %.80q: %s", ErrInvalid, p.Name, nameRule)
	}
	if p.Rights == 0 || p.Rights&^auth.Manage != 0 {
		return fmt.Errorf("%w: name at least one right of Send, Listen and Manage", ErrInvalid)
	}
	for _, key := range []string{p.Primary, p.Secondary} {
		if key != "" && !keyAllowed(key) {
			return fmt.Errorf("%w: a key given: %s", ErrInvalid, keyRule)
		}
	}
	return nil
}

func wellFormed(name string) bool {
	if name == "" || len(name) > maxNameBytes {
		return false
	}
	if !alphanumeric(name[0]) || !alphanumeric(name[len(name)-1]) {
		return false
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && !strings.ContainsRune("-_.", rune(name[i])) {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// keyAllowed keeps out what a connection string cannot carry, what can be guessed, and
// the well-known key, which is too short.
func keyAllowed(key string) bool {
	if len(key) < minKeyBytes || len(key) > maxKeyBytes {
		return false
	}
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == ';' })
}

// newKey is 256 random bits, written as Azure writes its keys.
func newKey() string {
	var bits [32]byte
	rand.Read(bits[:]) // never fails
	return base64.StdEncoding.EncodeToString(bits[:])
}
