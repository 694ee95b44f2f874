package topickey

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	orders    = "https://orders.example.test/api/events"
	ordersKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	other     = "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3Q="
)

var (
	ends   = time.Date(2030, 1, 2, 15, 4, 5, 0, time.UTC)
	before = ends.Add(-time.Second)
)

// The vectors of reference §2: what the official SDKs really write.
const (
	fromJavaScript = `r=https%3A%2F%2Forders.example.test%2Fapi%2Fevents%3FapiVersion%3D2018-01-01&e=1%2F2%2F2030%203%3A04%3A05%20PM&s=FusR3F3QA6a4GTGaLIwApK0zBY4G54MXFsN2zh1uUIs%3D`
	fromPython     = `r=https%3A%2F%2Forders.example.test%2Fapi%2Fevents%3FapiVersion%3D2018-01-01&e=2030-01-02%2015%3A04%3A05%2B00%3A00&s=BDTHObkYwA0Bw6t19XKipt2%2Fy0E0YJW9D5LFB2LztEI%3D`
	fromDotNet     = `r=https%3a%2f%2forders.example.test%2fapi%2fevents&e=1%2f2%2f2030+3%3a04%3a05+PM&s=rz3hktzQ3VXcih4QR5Phl4zeX6VUK4tBPRdj4XQTeJY%3D`
)

// G12: the tokens of the official SDKs, with either key of the topic.
func TestKnownTokens(t *testing.T) {
	for what, token := range map[string]string{"JavaScript": fromJavaScript, "Python": fromPython, ".NET": fromDotNet} {
		t.Run(what, func(t *testing.T) {
			for _, keys := range [][]string{{ordersKey}, {ordersKey, other}, {other, ordersKey}, {"", ordersKey}} {
				got, err := Check(token, before, keys...)
				if err != nil || got.Resource != orders || !got.Expires.Equal(ends) || !got.Covers(Target{Topic: "orders", Hosts: []string{"orders.example.test"}}) {
					t.Errorf("keys %q: %+v, %v", keys, got, err)
				}
			}
			for _, keys := range [][]string{nil, {""}, {other}, {strings.TrimSuffix(ordersKey, "E=") + "A="}} {
				testkit.ErrorIs(t, testkit.Err(Check(token, before, keys...)), ErrSignature, "keys %q", keys)
			}
			testkit.ErrorIs(t, testkit.Err(Check(token, ends, ordersKey)), ErrExpired, "when it ends")
			testkit.ErrorIs(t, testkit.Err(Check(token, ends, other)), ErrSignature, "when it ends, by another key")
		})
	}
}

// signed makes a token of parts that are escaped already.
func signed(r, e, key string) string {
	text := "r=" + r + "&e=" + e
	return text + "&s=" + url.QueryEscape(base64.StdEncoding.EncodeToString(sum(text, key)))
}

// G12: every spelling of the expiry.
func TestExpiries(t *testing.T) {
	tests := []struct{ what, e string }{
		{"JavaScript", "1/2/2030 3:04:05 PM"},
		{"with zeros", "01/02/2030 03:04:05 PM"},
		{"Java, without zeros", "1/2/2030 3:4:5 PM"},
		{"in small letters", "1/2/2030 3:04:05 pm"},
		{"DateTimeOffset of .NET", "1/2/2030 3:04:05 PM +00:00"},
		{"its narrow blank", "1/2/2030 3:04:05\u202fPM"},
		{"its narrow blank, and an offset", "1/2/2030 3:04:05\u202fPM +00:00"},
		{"the blank that does not break", "1/2/2030 3:04:05\u00a0PM"},
		{"an offset that is not zero", "1/2/2030 5:04:05 PM +02:00"},
		{"a fraction", "1/2/2030 3:04:05.000 PM"},
		{"the invariant culture", "01/02/2030 15:04:05"},
		{"the invariant culture, and an offset", "01/02/2030 15:04:05 +00:00"},
		{"Python", "2030-01-02 15:04:05"},
		{"Python with an offset", "2030-01-02 15:04:05+00:00"},
		{"Python with a fraction and an offset", "2030-01-02 15:04:05.000000+00:00"},
		{"a blank before the offset", "2030-01-02 15:04:05 +00:00"},
		{"ISO 8601", "2030-01-02T15:04:05"},
		{"with a fraction", "2030-01-02T15:04:05.000000"},
		{"with Z", "2030-01-02T15:04:05Z"},
		{"with a fraction and Z", "2030-01-02T15:04:05.0000000Z"},
		{"with an offset", "2030-01-02T17:04:05+02:00"},
		{"with an offset without its colon", "2030-01-02T15:04:05+0000"},
		{"more blanks", " 1/2/2030  3:04:05 PM "},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			escapes := map[string]string{
				"%20 for blanks": escape(tt.e), "+ for blanks": url.QueryEscape(tt.e),
				"lower hex": strings.ToLower(url.QueryEscape(tt.e)), "not escaped": strings.Trim(tt.e, " "),
			}
			for how, e := range escapes {
				got, err := Check(signed(escape(orders), e, ordersKey), before, ordersKey)
				if err != nil || !got.Expires.Equal(ends) {
					t.Errorf("%s: %+v, %v", how, got, err)
				}
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	good := escape(orders)
	tests := []struct{ what, token string }{
		{"nothing", ""},
		{"no token", "hello"},
		{"a key", ordersKey},
		{"no signature", "r=" + good + "&e=2030-01-02T15:04:05Z"},
		{"an empty signature", "r=" + good + "&e=2030-01-02T15:04:05Z&s="},
		{"a signature that is too short", "r=" + good + "&e=2030-01-02T15:04:05Z&s=AAAA"},
		{"a signature that is no base64", "r=" + good + "&e=2030-01-02T15:04:05Z&s=" + strings.Repeat("!", 43)},
		{"a signature with a bad escape", "r=" + good + "&e=2030-01-02T15:04:05Z&s=%zz"},
		{"something after the signature", fromJavaScript + "&x=y"},
		{"no resource", strings.Replace(signed("x", "2030-01-02T15:04:05Z", ordersKey), "r=x&", "", 1)},
		{"an empty resource", signed("", "2030-01-02T15:04:05Z", ordersKey)},
		{"a resource with a bad escape", signed("%zz", "2030-01-02T15:04:05Z", ordersKey)},
		{"a resource that is there twice", signed("x&r=y", "2030-01-02T15:04:05Z", ordersKey)},
		{"no expiry", signed(good, "", ordersKey)},
		{"an expiry that is there twice", signed(good, "2030-01-02T15:04:05Z&e=2040-01-02T15:04:05Z", ordersKey)},
		{"an expiry that is no time", signed(good, "tomorrow", ordersKey)},
		{"seconds", signed(good, "1893596645", ordersKey)},
		{"a day only", signed(good, "2030-01-02", ordersKey)},
		{"a month that is none", signed(good, "13/2/2030 3:04:05 PM", ordersKey)},
		{"an expiry with a bad escape", signed(good, "%zz", ordersKey)},
		{"too long", signed(strings.Repeat("x", 9000), "2030-01-02T15:04:05Z", ordersKey)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if got, err := Check(tt.token, before, ordersKey); !errors.Is(err, ErrMalformed) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// G12: what was signed is the text as it stands, to the byte.
func TestTheSignatureIsOverTheText(t *testing.T) {
	for what, token := range map[string]string{
		"another hex case":  strings.Replace(fromJavaScript, "%3A%2F%2F", "%3a%2f%2f", 1),
		"another blank":     strings.Replace(fromJavaScript, "%20PM", "+PM", 1),
		"a later expiry":    strings.Replace(fromJavaScript, "2030", "2031", 1),
		"another resource":  strings.Replace(fromJavaScript, "orders", "others", 1),
		"the order changed": "e=1%2F2%2F2030%203%3A04%3A05%20PM&r=https%3A%2F%2Forders.example.test%2Fapi%2Fevents%3FapiVersion%3D2018-01-01" + fromJavaScript[strings.Index(fromJavaScript, "&s="):],
	} {
		t.Run(what, func(t *testing.T) {
			testkit.ErrorIs(t, testkit.Err(Check(token, before, ordersKey)), ErrSignature)
		})
	}
	for what, token := range map[string]string{
		"a signature not escaped":          strings.Replace(fromPython, "%2Fy0E", "/y0E", 1),
		"its padding missing":              strings.TrimSuffix(fromPython, "%3D"),
		"blanks around":                    " " + fromPython + " ",
		"the parts the other way round":    reversed(),
		"a further part that is signed":    signed("x&z=1", "2030-01-02T15:04:05Z", ordersKey),
		"a key of an operator's own words": "",
	} {
		t.Run(what, func(t *testing.T) {
			key := ordersKey
			if token == "" {
				key = "correct horse battery staple"
				token = signed(escape(orders), "2030-01-02T15:04:05Z", key)
			}
			testkit.Check(t, testkit.Err(Check(token, before, key)))
		})
	}
}

func reversed() string {
	text := "e=2030-01-02T15:04:05Z&r=" + escape(orders)
	return text + "&s=" + escape(base64.StdEncoding.EncodeToString(sum(text, ordersKey)))
}

// G12: our own tokens are written as the SDK for JavaScript writes them.
func TestSign(t *testing.T) {
	got, err := Sign(orders+"?apiVersion=2018-01-01", ordersKey, ends.In(time.FixedZone("", 3600)))
	if err != nil || got != fromJavaScript {
		t.Errorf("got %s, %v", got, err)
	}
	for what, err := range map[string]error{
		"no key":      second(Sign(orders, "", ends)),
		"no resource": second(Sign("", ordersKey, ends)),
		"no end":      second(Sign(orders, ordersKey, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))),
	} {
		t.Run(what, func(t *testing.T) {
			if err == nil {
				t.Errorf("%s: it was signed", what)
			}
		})
	}
}

func second(_ string, err error) error { return err }

// G12: what is signed is good until it ends, with its key and no other.
func TestSignedTokensAreGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resource := rapid.StringMatching(`https?://[a-z]{1,9}(:[1-9][0-9]{3})?(/[a-zA-Z0-9 +&=%é-]{1,6}){0,4}`).Draw(t, "resource")
		key := rapid.StringN(1, 60, -1).Draw(t, "key")
		expires := time.Unix(rapid.Int64Range(0, 1e11).Draw(t, "expires"), 0).UTC()
		token, err := Sign(resource, key, expires)
		testkit.Must(t, err)
		got, err := Check(token, expires.Add(-1), key)
		if err != nil || got.Resource != resource || !got.Expires.Equal(expires) {
			t.Fatalf("%s: %+v, %v", token, got, err)
		}
		testkit.MustErrorIs(t, testkit.Err(Check(token, expires, key)), ErrExpired, "when it ends")
		if _, err := Check(token, expires.Add(-1), key+"x"); err == nil {
			t.Fatal("another key is good")
		}
	})
}

// Whatever strangers send is answered with one of our errors.
func FuzzCheck(f *testing.F) {
	for _, token := range []string{fromJavaScript, fromPython, fromDotNet, "", "r=&e=&s=", "r=%&e=%&s=%"} {
		f.Add(token, orders)
	}
	f.Fuzz(func(t *testing.T, token, target string) {
		got, err := Check(token, before, ordersKey)
		if err == nil {
			if !got.Expires.After(before) || strings.Contains(got.Resource, "?") {
				t.Errorf("%q: %+v", token, got)
			}
		} else if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrSignature) && !errors.Is(err, ErrExpired) {
			t.Errorf("%q: %v", token, err)
		}
		publish := Target{Topic: "orders", Hosts: []string{"orders.example.test"}}
		pull := publish
		pull.Subscription = "jobs"
		covers := Token{Resource: target}.Covers
		path := strings.Trim(strings.TrimPrefix(strings.ToLower(target), "https://orders.example.test"), "/")
		if both := covers(publish) && covers(pull); both && strings.Contains(path, "event") {
			t.Errorf("%q is good for both", target)
		}
	})
}
