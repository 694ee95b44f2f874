package topickey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// What a caller branches on.
var (
	// ErrMalformed: it is no token, lacks a part, or has an expiry that cannot be read.
	ErrMalformed = errors.New("shared-access signature is malformed")
	// ErrSignature: none of the keys made it.
	ErrSignature = errors.New("shared-access signature was not made with a key of this topic")
	// ErrExpired: it is a good one whose time is over.
	ErrExpired = errors.New("shared-access signature is expired")
)

// maxTokenBytes bounds what is looked at; official tokens have a few hundred bytes.
const maxTokenBytes = 8192

// Token is a checked aeg-sas-token.
type Token struct {
	// Resource is as written, unescaped, without its query.
	Resource string
	Expires  time.Time
	// Key is the digest of the key that made it.
	Key [sha256.Size]byte
}

// Check verifies the text r=…&e=…&s=… with any of the keys, over its own bytes, and its
// expiry in all spellings of reference §2. Errors wrap ErrMalformed, ErrSignature, ErrExpired.
func Check(token string, now time.Time, keys ...string) (Token, error) {
	signed, mac, err := split(token)
	if err != nil {
		return Token{}, err
	}
	t, err := parse(signed)
	if err != nil {
		return Token{}, err
	}
	found := false
	for _, key := range keys { // all of them: the time taken does not say which one it was
		if key != "" && hmac.Equal(mac, sum(signed, key)) {
			found, t.Key = true, sha256.Sum256([]byte(key))
		}
	}
	if !found {
		return Token{}, fmt.Errorf("%w: make it with key1 or key2, decoded from base64, over r=…&e=… as written", ErrSignature)
	}
	if !now.Before(t.Expires) {
		return Token{}, fmt.Errorf("%w since %s: make a new one", ErrExpired, t.Expires.Format(time.RFC3339))
	}
	return t, nil
}

// split takes the signature off. What stands before it is what was signed, to the byte: each
// client escapes in its own way, so it must not be unescaped and escaped again.
//
// The signature is base64 that was escaped, or was not: then a plus stands for itself, and a blank
// is a plus that somebody unescaped as in a form.
func split(token string) (signed string, mac []byte, err error) {
	token = strings.TrimSpace(token)
	if len(token) > maxTokenBytes {
		return "", nil, malformed("it has %d bytes, at most %d are allowed", len(token), maxTokenBytes)
	}
	at := strings.LastIndex(token, "&s=")
	if at < 0 {
		return "", nil, malformed("it does not end with &s= and the signature")
	}
	text, err := url.PathUnescape(token[at+len("&s="):])
	if err != nil {
		return "", nil, malformed("s: %v", err)
	}
	mac, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.ReplaceAll(text, " ", "+"), "="))
	if err != nil || len(mac) != sha256.Size {
		return "", nil, malformed("s is not the base64 of %d bytes", sha256.Size)
	}
	return token[:at], mac, nil
}

func parse(signed string) (Token, error) {
	r, err := field(signed, "r")
	if err != nil {
		return Token{}, err
	}
	e, err := field(signed, "e")
	if err != nil {
		return Token{}, err
	}
	resource, err := url.QueryUnescape(r)
	if err != nil {
		return Token{}, malformed("r: %v", err)
	}
	expires, err := parseExpiry(e)
	if err != nil {
		return Token{}, err
	}
	resource, _, _ = strings.Cut(resource, "?")
	return Token{Resource: resource, Expires: expires}, nil
}

// field finds a parameter's value, as it stands. One that is there twice is refused: two
// readers could take different ones.
func field(signed, name string) (string, error) {
	found := ""
	for part := range strings.SplitSeq(signed, "&") {
		value, ok := strings.CutPrefix(part, name+"=")
		if !ok {
			continue
		}
		if found != "" {
			return "", malformed("it has %s twice", name)
		}
		found = value
	}
	if found == "" {
		return "", malformed("it lacks %s", name)
	}
	return found, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

func sum(signed, key string) []byte {
	mac := hmac.New(sha256.New, secret(key))
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

// Sign makes a token, for our own client and tests. It is written the way the official SDK for
// JavaScript writes it.
func Sign(resource, key string, expires time.Time) (string, error) {
	switch {
	case key == "":
		return "", errors.New("sign a shared-access signature: the key is empty: give key1 or key2 of the topic")
	case resource == "":
		return "", errors.New("sign a shared-access signature: the resource is empty: give the URL of the topic")
	case expires.Year() < 1 || expires.Year() > 9999:
		return "", fmt.Errorf("sign a shared-access signature: it cannot expire in the year %d: give one of four digits", expires.Year())
	}
	signed := "r=" + escape(resource) + "&e=" + escape(expires.UTC().Format(signedLayout))
	return signed + "&s=" + escape(base64.StdEncoding.EncodeToString(sum(signed, key))), nil
}

// escape is encodeURIComponent for what occurs here.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
