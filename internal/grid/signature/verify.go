package signature

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What a caller branches on.
var (
	// ErrSignature: a header is missing or cannot be read, or no signature was made with a key.
	ErrSignature = errors.New("webhook signature does not fit")
	// ErrTime: the signature was made too long ago, or in the future.
	ErrTime = errors.New("webhook signature is too old or too new")
)

// DefaultTolerance is how far the sender's clock may be off, and how late an answer repeated by
// somebody else is still taken.
const DefaultTolerance = 5 * time.Minute

// maxSignatures bounds what a stranger may have us check; a rotation has two or three.
const maxSignatures = 16

// Verifier is a checked set of keys to verify with, immutable.
type Verifier struct{ keys []parsed }

// NewVerifier checks keys: HMAC texts, or ed25519 ones of either kind.
func NewVerifier(keys []string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key to verify signatures with: give at least one")
	}
	v := &Verifier{}
	for i, text := range keys {
		key, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("verification key %d: %w", i+1, err)
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Verify checks what Sign wrote, with any of the keys (HMAC texts or whpk_ public ones).
// Errors: ErrSignature, ErrTime (older or newer than tolerance; zero: 5 minutes), or that a key
// cannot be used.
func Verify(h http.Header, body []byte, keys []string, now time.Time, tolerance time.Duration) error {
	v, err := NewVerifier(keys)
	if err != nil {
		return err
	}
	return v.Verify(h, body, now, tolerance)
}

// Verify checks what Sign wrote. Errors: ErrSignature, ErrTime (older or newer than tolerance;
// zero: DefaultTolerance).
func (v *Verifier) Verify(h http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	id, timestamp, signatures := h.Get(headerID), h.Get(headerTimestamp), h.Get(headerSignature)
	if id == "" || timestamp == "" || signatures == "" {
		return fmt.Errorf("%w: webhook-id, webhook-timestamp or webhook-signature is missing", ErrSignature)
	}
	if !v.fits(id, timestamp, signatures, body) {
		return fmt.Errorf("%w: none of %d keys made it", ErrSignature, len(v.keys))
	}
	// Only now: what a stranger writes about the time is not news.
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: webhook-timestamp is %.32q, not a number of seconds", ErrSignature, timestamp)
	}
	tolerance = cmp.Or(tolerance, DefaultTolerance)
	signed := time.Unix(seconds, 0)
	if signed.Before(now.Add(-tolerance)) || signed.After(now.Add(tolerance)) {
		return fmt.Errorf("%w: it says %s, more than %v from now: check the clocks of both sides", ErrTime, timestamp, tolerance)
	}
	return nil
}

func (v *Verifier) fits(id, timestamp, signatures string, body []byte) bool {
	checks := v.checks(id, timestamp, body)
	for n, signature := range strings.Fields(signatures) {
		if n == maxSignatures {
			return false
		}
		for _, check := range checks {
			if check(signature) {
				return true
			}
		}
	}
	return false
}

// checks gives one for each key, which says whether a signature with its version is the key's.
func (v *Verifier) checks(id, timestamp string, body []byte) []func(string) bool {
	var checks []func(string) bool
	var text []byte
	for _, key := range v.keys {
		if key.secret != nil {
			mac := sum(key.secret, id, timestamp, body)
			checks = append(checks, func(s string) bool { return hmac.Equal(mac, decode(s, versionHMAC)) })
			continue
		}
		if text == nil {
			text = content(id, timestamp, body)
		}
		checks = append(checks, func(s string) bool { return ed25519.Verify(key.public, text, decode(s, versionEd25519)) })
	}
	return checks
}

// decode gives the bytes of a signature of a version; none where it is of another.
func decode(signature, version string) []byte {
	text, ok := strings.CutPrefix(signature, version)
	if !ok {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}
