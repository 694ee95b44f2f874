package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// scheme is what a shared-access signature begins with, before a blank.
const scheme = "SharedAccessSignature"

// Signature is a shared-access signature taken apart.
type Signature struct {
	// Resource is what it was made for, unescaped; Path what that comes to.
	Resource, Path string
	// Policy is the name of the policy whose key signed it, unescaped.
	Policy  string
	Expires time.Time
	// signed and mac are what was signed, as it stands in the token, and the signature.
	signed string
	mac    []byte
}

// IsSignature reports whether a token is a shared-access signature, well-formed or not,
// and no bearer token.
func IsSignature(token string) bool {
	return len(token) > len(scheme) && token[len(scheme)] == ' ' && Fold(token[:len(scheme)]) == Fold(scheme)
}

// ParseSignature reads "SharedAccessSignature sr=…&sig=…&se=…&skn=…"; ErrMalformed.
func ParseSignature(token string) (Signature, error) {
	if len(token) > MaxTokenBytes {
		return Signature{}, malformed("it has %d bytes, at most %d are allowed", len(token), MaxTokenBytes)
	}
	if !IsSignature(token) {
		return Signature{}, malformed("it does not begin with %q", scheme+" ")
	}
	// The parameters stay as they stand in the token: the resource must not be unescaped before its
	// signature is checked, because clients sign what they write, and each escapes in its own way.
	var sr, sig, se, skn string
	known := []struct {
		name string
		to   *string
	}{{"sr", &sr}, {"sig", &sig}, {"se", &se}, {"skn", &skn}}
	for field := range strings.SplitSeq(strings.TrimSpace(token[len(scheme):]), "&") {
		name, value, _ := strings.Cut(field, "=")
		for _, k := range known {
			if k.name != name {
				continue
			}
			if *k.to != "" {
				return Signature{}, malformed("it has %s twice", name)
			}
			*k.to = value
		}
	}
	for _, k := range known {
		if *k.to == "" {
			return Signature{}, malformed("it lacks %s", k.name)
		}
	}
	resource, err := url.QueryUnescape(sr)
	if err != nil {
		return Signature{}, malformed("sr: %v", err)
	}
	path, err := Path(resource)
	if err != nil {
		return Signature{}, err
	}
	seconds, err := strconv.ParseUint(se, 10, 63)
	if err != nil {
		return Signature{}, malformed("se is %.32q, not a number of seconds", se)
	}
	mac, err := parseMAC(sig)
	if err != nil {
		return Signature{}, err
	}
	return Signature{
		Resource: resource, Path: path, Policy: unescapeName(skn),
		Expires: time.Unix(int64(min(seconds, maxExpiry)), 0).UTC(), signed: sr + "\n" + se, mac: mac,
	}, nil
}

// maxExpiry keeps times within what can be written with a year of four digits.
const maxExpiry = 253402300799

// parseMAC reads base64 that was escaped, or was not: then a plus stands for itself, and
// a blank is a plus that somebody unescaped as in a form.
func parseMAC(sig string) ([]byte, error) {
	text, err := url.PathUnescape(sig)
	if err != nil {
		return nil, malformed("sig: %v", err)
	}
	text = strings.TrimRight(strings.ReplaceAll(text, " ", "+"), "=")
	mac, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(mac) != sha256.Size {
		return nil, malformed("sig is not the base64 of %d bytes", sha256.Size)
	}
	return mac, nil
}

// unescapeName undoes what clients do to the name of a policy: escape it not at all,
// once, or twice.
func unescapeName(skn string) string {
	for range 2 {
		plain, err := url.QueryUnescape(skn)
		if err != nil {
			break
		}
		skn = plain
	}
	return skn
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// SignedBy reports whether a key made the signature; it compares in constant time. An
// empty key signs nothing.
func (s Signature) SignedBy(key string) bool {
	return hmac.Equal(s.mac, sum(s.signed, key)) && key != ""
}

// sum uses the key as the text it is: it looks like base64 but is not decoded.
func sum(signed, key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(signed))
	return mac.Sum(nil)
}

// Sign makes a token for a resource, such as sb://host/hub.
func Sign(resource, policy, key string, expires time.Time) string {
	sr := url.QueryEscape(resource)
	se := strconv.FormatInt(expires.Unix(), 10)
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(sum(sr+"\n"+se, key)))
	return scheme + " sr=" + sr + "&sig=" + sig + "&se=" + se + "&skn=" + url.QueryEscape(policy)
}
