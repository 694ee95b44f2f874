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

// IsSignature tells whether a token is a shared-access signature, well-formed or not,
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
	fields, err := splitFields(strings.TrimSpace(token[len(scheme):]))
	if err != nil {
		return Signature{}, err
	}
	return fields.signature()
}

// fields are the parameters of a signature, as they stand in the token. The resource
// must not be unescaped before its signature is checked: clients sign what they write,
// and each escapes in its own way.
type fields struct{ sr, sig, se, skn string }

func splitFields(text string) (fields, error) {
	var f fields
	for field := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(field, "=")
		var to *string
		switch name {
		case "sr":
			to = &f.sr
		case "sig":
			to = &f.sig
		case "se":
			to = &f.se
		case "skn":
			to = &f.skn
		default:
			continue
		}
		if *to != "" {
			return f, malformed("it has %s twice", name)
		}
		*to = value
	}
	return f, f.check()
}

func (f fields) check() error {
	for _, part := range []struct{ name, value string }{{"sr", f.sr}, {"sig", f.sig}, {"se", f.se}, {"skn", f.skn}} {
		if part.value == "" {
			return malformed("it lacks %s", part.name)
		}
	}
	return nil
}

func (f fields) signature() (Signature, error) {
	resource, err := url.QueryUnescape(f.sr)
	if err != nil {
		return Signature{}, malformed("sr: %v", err)
	}
	path, err := Path(resource)
	if err != nil {
		return Signature{}, err
	}
	expires, err := parseExpiry(f.se)
	if err != nil {
		return Signature{}, err
	}
	mac, err := parseMAC(f.sig)
	if err != nil {
		return Signature{}, err
	}
	return Signature{
		Resource: resource, Path: path, Policy: unescapeName(f.skn), Expires: expires,
		signed: f.sr + "\n" + f.se, mac: mac,
	}, nil
}

// maxExpiry keeps times within what can be written with a year of four digits.
const maxExpiry = 253402300799

func parseExpiry(se string) (time.Time, error) {
	seconds, err := strconv.ParseUint(se, 10, 63)
	if err != nil {
		return time.Time{}, malformed("se is %.32q, not a number of seconds", se)
	}
	return time.Unix(int64(min(seconds, maxExpiry)), 0).UTC(), nil
}

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

// SignedBy tells whether a key made the signature; it compares in constant time. An
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
