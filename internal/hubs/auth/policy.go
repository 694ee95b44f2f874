package auth

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxPolicyNameBytes = 64
	minKeyBytes        = 16
	maxKeyBytes        = 256
)

// CheckPolicyName says what is wrong with the name of a policy, if anything.
func CheckPolicyName(name string) error {
	if name == "" || len(name) > maxPolicyNameBytes || !alphanumeric(name[0]) || !alphanumeric(name[len(name)-1]) ||
		strings.ContainsFunc(name, func(r rune) bool { return r > '~' || !alphanumeric(byte(r)) && !strings.ContainsRune("-_.", r) }) {
		return fmt.Errorf("%.80q is no name: use 1 to %d letters, digits, '-', '_' and '.', with a letter or digit at both ends",
			name, maxPolicyNameBytes)
	}
	return nil
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// CheckKey says what is wrong with a key that somebody has chosen, if anything: it is what
// everybody knows, what can be guessed, or what no connection string could hold. The key
// itself is not in the error.
func CheckKey(key string) error {
	unfit := func(r rune) bool { return r <= ' ' || r > '~' || r == ';' }
	switch {
	case key == DevelopmentKey:
		return errors.New("this key is known to everybody; in development mode it is good for " + RootPolicy)
	case len(key) < minKeyBytes || len(key) > maxKeyBytes || strings.ContainsFunc(key, unfit):
		return fmt.Errorf("a key has %d to %d characters of ASCII, no blanks and no semicolon; leave it out to have one made",
			minKeyBytes, maxKeyBytes)
	}
	return nil
}
