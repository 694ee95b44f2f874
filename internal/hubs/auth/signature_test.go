package auth

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// goodToken is known to be right: its signature was computed elsewhere.
const (
	goodKey   = "SAS_KEY_VALUE"
	goodSig   = "%2B6CYBfqphx3YsxmkZ0NzSckljHE3xsybAiCwXx%2Bqy5o%3D"
	goodSR    = "amqp%3A%2F%2Flocalhost%2Feh1"
	goodToken = "SharedAccessSignature sr=" + goodSR + "&sig=" + goodSig + "&se=1700003600&skn=RootManageSharedAccessKey"
)

func TestKnownSignature(t *testing.T) {
	s := testkit.Value(ParseSignature(goodToken))(t)
	if s.Resource != "amqp://localhost/eh1" || s.Path != "eh1" || s.Policy != RootPolicy || s.Expires.Unix() != 1700003600 {
		t.Errorf("got %+v", s)
	}
	testkit.Equal(t, s.SignedBy(goodKey), true, "not signed by its key")
	for _, key := range []string{"", "sas_key_value", goodKey + " ", "x"} {
		testkit.Equal(t, s.SignedBy(key), false, "signed by %q", key)
	}
	testkit.Equal(t, Sign("amqp://localhost/eh1", RootPolicy, goodKey, time.Unix(1700003600, 0)), goodToken, "signed as")
}

// However a client writes a token, it is read alike.
func TestSignatureSpellings(t *testing.T) {
	replace := func(old, with string) string { return strings.Replace(goodToken, old, with, 1) }
	tests := []struct{ what, token string }{
		{"the order is free", "SharedAccessSignature skn=RootManageSharedAccessKey&se=1700003600&sig=" + goodSig + "&sr=" + goodSR},
		{"escapes of the signature in lower hex", replace(goodSig, strings.ToLower("%2B")+"6CYBfqphx3YsxmkZ0NzSckljHE3xsybAiCwXx%2bqy5o%3d")},
		{"the signature not escaped", replace(goodSig, "+6CYBfqphx3YsxmkZ0NzSckljHE3xsybAiCwXx+qy5o=")},
		{"its plus unescaped as in a form", replace(goodSig, " 6CYBfqphx3YsxmkZ0NzSckljHE3xsybAiCwXx qy5o=")},
		{"without its padding", replace(goodSig, "%2B6CYBfqphx3YsxmkZ0NzSckljHE3xsybAiCwXx%2Bqy5o")},
		{"the scheme in another case", replace("SharedAccessSignature", "sharedaccesssignature")},
		{"more blanks", replace(" sr=", "   sr=") + " "},
		{"further parameters", goodToken + "&x=y&z"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			s, err := ParseSignature(tt.token)
			if err != nil || s.Path != "eh1" || !s.SignedBy(goodKey) {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

// What is signed is the resource as it is written: the same one escaped otherwise has
// another signature.
func TestSignatureIsOverTheEscapedText(t *testing.T) {
	s := testkit.Value(ParseSignature(strings.Replace(goodToken, goodSR, strings.ToLower(goodSR), 1)))(t)
	testkit.MustEqual(t, s.Path, "eh1", "got %+v", s)
	testkit.Equal(t, s.SignedBy(goodKey), false, "the signature fits another text")
	sr := strings.ToLower(url.QueryEscape("amqp://localhost:5672/Eh1"))
	testkit.Equal(t, signed(t, sr, goodKey).SignedBy(goodKey), true, "the way Go's SDK escapes is not understood")
}

// signed makes a token around a resource escaped by the caller, and reads it.
func signed(t *testing.T, sr, key string) Signature {
	t.Helper()
	sig := base64.StdEncoding.EncodeToString(sum(sr+"\n1700003600", key))
	s, err := ParseSignature("SharedAccessSignature sr=" + sr + "&sig=" + url.QueryEscape(sig) + "&se=1700003600&skn=p")
	testkit.Must(t, err)
	return s
}

// H9: who has no key cannot sign with none.
func TestEmptyKeySignsNothing(t *testing.T) {
	s := testkit.Value(ParseSignature(Sign("sb://ns", RootPolicy, "", time.Unix(1700003600, 0))))(t)
	testkit.Equal(t, s.SignedBy(""), false, "an empty key signs")
}

func TestPolicyNameOfASignature(t *testing.T) {
	tests := []struct{ what, skn, want string }{
		{"as it is", "send-only", "send-only"},
		{"escaped once", "a%20b", "a b"},
		{"escaped twice, as Python does", "a%2520b", "a b"},
		{"a plus of a form, escaped once more", "a%2Bb", "a b"},
		{"escaped three times is unescaped twice", "a%252520b", "a%20b"},
		{"no escape is left as it is", "100%", "100%"},
		{"nor is it after one step", "100%25", "100%"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			s := testkit.Value(ParseSignature(strings.Replace(goodToken, RootPolicy, tt.skn, 1)))(t)
			testkit.Equal(t, s.Policy, tt.want)
		})
	}
}

func TestMalformedSignatures(t *testing.T) {
	replace := func(old, with string) string { return strings.Replace(goodToken, old, with, 1) }
	tests := []struct{ what, token string }{
		{"nothing", ""},
		{"the scheme alone", "SharedAccessSignature"},
		{"the scheme and a blank", "SharedAccessSignature "},
		{"another scheme", replace("SharedAccessSignature", "Bearer")},
		{"no blank", replace("SharedAccessSignature ", "SharedAccessSignature")},
		{"no resource", replace("sr="+goodSR, "x=y")},
		{"an empty resource", replace(goodSR, "")},
		{"no signature", replace("sig="+goodSig, "x=y")},
		{"no end", replace("&se=1700003600", "")},
		{"no policy", replace("&skn=RootManageSharedAccessKey", "")},
		{"a parameter twice", goodToken + "&se=1800000000"},
		{"an end that is no number", replace("1700003600", "tomorrow")},
		{"a negative end", replace("1700003600", "-1")},
		{"an end beyond all numbers", replace("1700003600", "99999999999999999999")},
		{"a broken escape in the resource", replace(goodSR, "%zz")},
		{"a resource that is none", replace(goodSR, "ftp%3A%2F%2Fhost%2Fhub")},
		{"a broken escape in the signature", replace(goodSig, "%zz")},
		{"a signature that is no base64", replace(goodSig, "!")},
		{"a signature too short", replace(goodSig, "AAAA")},
		{"a signature too long", replace(goodSig, strings.Repeat("A", 44))},
		{"more bytes than a token has", goodToken + strings.Repeat("x", MaxTokenBytes)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(ParseSignature(tt.token)), ErrMalformed)
		})
	}
}

// A time far off is a time, and can be written.
func TestDistantExpiry(t *testing.T) {
	s := testkit.Value(ParseSignature(strings.Replace(goodToken, "1700003600", "9223372036854775807", 1)))(t)
	testkit.Equal(t, s.Expires.Year(), 9999, "got %v", s.Expires)
}

func TestIsSignature(t *testing.T) {
	for token, want := range map[string]bool{
		goodToken: true, "SharedAccessSignature ": true, "SharedAccessSignature": false,
		"": false, "eyJhbGciOi": false, "SharedAccessSignatures x": false, "Sanitized": false,
	} {
		t.Run(token, func(t *testing.T) {
			testkit.Equal(t, IsSignature(token), want, "%q", token)
		})
	}
}

// Whatever is signed is read back as it was, and by no other key.
func TestSignThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hub := rapid.StringMatching(`[a-z0-9._/-]{0,20}`).Draw(t, "hub")
		policy := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Draw(t, "policy")
		key := rapid.StringMatching(`[!-~]{1,80}`).Draw(t, "key")
		other := rapid.StringMatching(`[!-~]{0,80}`).Draw(t, "other key")
		end := rapid.Int64Range(0, maxExpiry).Draw(t, "end")
		s := testkit.Value(ParseSignature(Sign("sb://host/"+hub, policy, key, time.Unix(end, 0))))(t)
		if s.Path != PathOf(hub) || s.Policy != policy || s.Expires.Unix() != end {
			t.Errorf("came back as %+v", s)
		}
		testkit.Equal(t, s.SignedBy(key), true, "the wrong key fits")
		testkit.Equal(t, s.SignedBy(other), (other == key), "the wrong key fits")
	})
}

// Strangers' tokens do no harm, and what is taken for one has all its parts.
func FuzzParseSignature(f *testing.F) {
	f.Add(goodToken)
	f.Add("SharedAccessSignature sr=&sig=&se=&skn=")
	f.Add("SharedAccessSignature sr=h%2Fa&sig=" + goodSig + "&se=1&skn=%25%32%35")
	f.Fuzz(func(t *testing.T, token string) {
		s, err := ParseSignature(token)
		if err != nil {
			testkit.ErrorIs(t, err, ErrMalformed, "does not wrap ErrMalformed")
			return
		}
		path, err := Path(s.Resource)
		if err != nil || path != s.Path || len(s.mac) != 32 || s.Expires.Year() > 9999 {
			t.Errorf("%q was read as %+v", token, s)
		}
		testkit.Equal(t, s.SignedBy(""), false, "an empty key signs")
	})
}

func TestExpiredError(t *testing.T) {
	err := error(&ExpiredError{At: time.Unix(1700003600, 0)})
	testkit.ErrorIs(t, err, ErrExpired, "it is not ErrExpired")
	// The beginning is what go's producer_client_test.go of Event Hubs looks for.
	testkit.Equal(t, err.Error(), "ExpiredToken: The token is expired. Expiration time: 2023-11-14T23:13:20Z.")
}
