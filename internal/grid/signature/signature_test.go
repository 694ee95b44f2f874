package signature

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The example of the Standard Webhooks specification.
const (
	knownSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	knownBody      = `{"test": 2432232314}`
	knownTime      = 1614265330
)

var now = time.Unix(knownTime, 0)

func made(t testing.TB, algorithm string) Key {
	t.Helper()
	key := testkit.Value(New(algorithm))(t)
	return key
}

func sign(t testing.TB, id, body string, keys ...Key) http.Header {
	t.Helper()
	s := testkit.Value(NewSigner(keys))(t)
	h := http.Header{}
	s.Sign(h, id, now, []byte(body))
	return h
}

func public(t testing.TB, key Key) string {
	t.Helper()
	text := testkit.Value(key.Public())(t)
	return text
}

func TestKnownSignature(t *testing.T) {
	h := sign(t, knownID, knownBody, Key{Text: knownSecret})
	if h.Get("webhook-id") != knownID || h.Get("webhook-timestamp") != "1614265330" || h.Get("webhook-signature") != knownSignature {
		t.Errorf("got %v", h)
	}
	testkit.Check(t, Verify(h, []byte(knownBody), []string{knownSecret}, now, 0))
}

// What we sign is good to the library that receivers use, and the other way round.
func TestAgainstTheOfficialLibrary(t *testing.T) {
	key := made(t, HMAC)
	oracle := testkit.Value(standardwebhooks.NewWebhook(key.Text))(t)
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.StringMatching(`[!-~]{1,40}`).Draw(rt, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(rt, "body")
		h := sign(t, id, string(body), key)
		testkit.Must(rt, oracle.VerifyIgnoringTimestamp(body, h), "the library on ours")
		theirs := testkit.Value(oracle.Sign(id, now, body))(rt)
		h.Set("webhook-id", id)
		h.Set("webhook-signature", theirs)
		testkit.Must(rt, Verify(h, body, []string{key.Text}, now, 0), "ours on the library's")
	})
}

// During a rotation both keys sign; one that is expired does not.
func TestRotation(t *testing.T) {
	older, newer := made(t, HMAC), made(t, Ed25519)
	for _, tt := range []struct {
		what           string
		expires        time.Time
		olderOK, newOK bool
	}{
		{"never expires", time.Time{}, true, true},
		{"expires later", now.Add(time.Second), true, true},
		{"expires now", now, false, true},
		{"is expired", now.Add(-time.Second), false, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := sign(t, "1", "{}", Key{Text: older.Text, Expires: tt.expires}, newer)
			if err := Verify(h, []byte("{}"), []string{older.Text}, now, 0); (err == nil) != tt.olderOK {
				t.Errorf("older: %v", err)
			}
			if err := Verify(h, []byte("{}"), []string{public(t, newer)}, now, 0); (err == nil) != tt.newOK {
				t.Errorf("newer: %v", err)
			}
		})
	}
}

func TestWhereNoKeySigns(t *testing.T) {
	h := sign(t, "1", "{}")
	testkit.Equal(t, len(h), 0, "without keys: %v", h)
	(*Signer)(nil).Sign(h, "1", now, nil)
	testkit.Equal(t, len(h), 0, "a nil signer: %v", h)
	key := made(t, HMAC)
	key.Expires = now
	if h = sign(t, "1", "{}", key); h.Get("webhook-signature") != "" || h.Get("webhook-id") != "1" {
		t.Errorf("all expired: %v", h)
	}
}

// An id may be anything; what stands in the header is what was signed.
func TestIDs(t *testing.T) {
	key := made(t, HMAC)
	for id, kept := range map[string]bool{
		"1": true, "8f3c-11": true, "orders/42?x=y": true, strings.Repeat("x", 255): true,
		"": false, "a.b": false, "a b": false, "a\r\nx: y": false, "é": false, "\x00": false, strings.Repeat("x", 256): false,
	} {
		t.Run(id, func(t *testing.T) {
			h, again := sign(t, id, "{}", key), sign(t, id, "{}", key)
			got := h.Get("webhook-id")
			if (got == id) != kept || got == "" || got != again.Get("webhook-id") {
				t.Errorf("%q became %q", id, got)
			}
			testkit.Check(t, Verify(h, []byte("{}"), []string{key.Text}, now, 0), "%q", id)
		})
	}
	if a, b := sign(t, "a.b", "", key), sign(t, "a.c", "", key); a.Get("webhook-id") == b.Get("webhook-id") {
		t.Error("two ids became one")
	}
}

func TestASignerKeepsNothingOfBefore(t *testing.T) {
	s, err := NewSigner([]Key{{Text: made(t, HMAC).Text, Expires: now}})
	testkit.Must(t, err)
	h := http.Header{}
	h.Set("webhook-signature", "v1,old")
	s.Sign(h, "1", now, nil)
	testkit.Equal(t, h.Get("webhook-signature"), "", "an old signature is still there")
}

func TestNewSignerSaysWhichKeyIsWrong(t *testing.T) {
	good := made(t, HMAC)
	bad := map[string]string{"public": public(t, made(t, Ed25519)), "none": "", "half": good.Text[:20]}
	for what, text := range bad {
		t.Run(what, func(t *testing.T) {
			_, err := NewSigner([]Key{good, {Text: text}})
			if err == nil || !strings.Contains(err.Error(), "signing key 2") {
				t.Errorf("%s: %v", what, err)
			}
			if text != "" && err != nil && strings.Contains(err.Error(), text) {
				t.Errorf("%s: the key is in %v", what, err)
			}
		})
	}
}

func TestVerify(t *testing.T) {
	hmacKey, edKey := made(t, HMAC), made(t, Ed25519)
	both := []string{hmacKey.Text, public(t, edKey)}
	change := func(name, value string) func(http.Header) {
		return func(h http.Header) { h.Set(name, value) }
	}
	for _, tt := range []struct {
		what   string
		change func(http.Header)
		body   string
		at     time.Duration
		want   error
	}{
		{"as signed", func(http.Header) {}, "{}", 0, nil},
		{"a little later", func(http.Header) {}, "{}", 5 * time.Minute, nil},
		{"a little earlier", func(http.Header) {}, "{}", -5 * time.Minute, nil},
		{"much later", func(http.Header) {}, "{}", 5*time.Minute + 1, ErrTime},
		{"much earlier", func(http.Header) {}, "{}", -5*time.Minute - 1, ErrTime},
		{"another body", func(http.Header) {}, "{} ", 0, ErrSignature},
		{"another id", change("webhook-id", "2"), "{}", 0, ErrSignature},
		{"another time", change("webhook-timestamp", "1614265331"), "{}", 0, ErrSignature},
		{"no id", change("webhook-id", ""), "{}", 0, ErrSignature},
		{"no time", change("webhook-timestamp", ""), "{}", 0, ErrSignature},
		{"no signature", change("webhook-signature", ""), "{}", 0, ErrSignature},
		{"a version that is unknown", func(h http.Header) {
			h.Set("webhook-signature", strings.NewReplacer("v1,", "v2,", "v1a,", "v2a,").Replace(h.Get("webhook-signature")))
		}, "{}", 0, ErrSignature},
		{"versions changed over", func(h http.Header) {
			h.Set("webhook-signature", strings.NewReplacer("v1,", "v1a,", "v1a,", "v1,").Replace(h.Get("webhook-signature")))
		}, "{}", 0, ErrSignature},
		{"others beside it", func(h http.Header) {
			h.Set("webhook-signature", "v1,AAAA v9 , v1a, "+h.Get("webhook-signature"))
		}, "{}", 0, nil},
		{"too many others before it", func(h http.Header) {
			h.Set("webhook-signature", strings.Repeat("v1,AAAA ", 16)+h.Get("webhook-signature"))
		}, "{}", 0, ErrSignature},
	} {
		t.Run(tt.what, func(t *testing.T) {
			for _, key := range []Key{hmacKey, edKey} {
				h := sign(t, "1", "{}", key)
				tt.change(h)
				testkit.ErrorIs(t, Verify(h, []byte(tt.body), both, now.Add(tt.at), 0), tt.want, "%.5s", key.Text)
			}
		})
	}
}

// A time that is no number was signed by us in no case, but a key's owner can write anything.
func TestTimesThatAreNone(t *testing.T) {
	key := testkit.Value(parse(knownSecret))(t)
	for timestamp, want := range map[string]error{
		"soon": ErrSignature, "1614265330.5": ErrSignature, "9223372036854775807": ErrTime, "-9223372036854775808": ErrTime, "0": ErrTime,
	} {
		t.Run(timestamp, func(t *testing.T) {
			h := http.Header{}
			h.Set("webhook-id", "1")
			h.Set("webhook-timestamp", timestamp)
			h.Set("webhook-signature", signing{secret: key.secret}.sign("1", timestamp, nil))
			testkit.ErrorIs(t, Verify(h, nil, []string{knownSecret}, now, 0), want, "%s", timestamp)
		})
	}
}

func TestKeysToVerifyWith(t *testing.T) {
	hmacKey, edKey := made(t, HMAC), made(t, Ed25519)
	tests := []struct {
		what string
		keys []string
		good bool
	}{
		{"the secret", []string{hmacKey.Text}, true},
		{"the private key", []string{edKey.Text}, true},
		{"one of several", []string{made(t, HMAC).Text, public(t, made(t, Ed25519)), hmacKey.Text}, true},
		{"none", nil, false},
		{"others", []string{made(t, HMAC).Text, public(t, made(t, Ed25519))}, false},
		{"one that cannot be read", []string{hmacKey.Text, "secret"}, false},
	}
	h := sign(t, "1", "{}", hmacKey, edKey)
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if err := Verify(h, []byte("{}"), tt.keys, now, 0); (err == nil) != tt.good {
				t.Error(err)
			}
		})
	}
}

// Whatever strangers write in the headers, nobody is let in and nothing breaks.
func FuzzVerify(f *testing.F) {
	hmacKey, edKey := made(f, HMAC), made(f, Ed25519)
	f.Add(knownID, "1614265330", knownSignature, []byte(knownBody))
	f.Add("", "", "", []byte(nil))
	f.Add("1", "-1", "v1, v1a, v1 ,", []byte("{}"))
	f.Add("1", "9223372036854775807", "v1a,"+strings.Repeat("A", 86)+"==", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, timestamp, signatures string, body []byte) {
		h := http.Header{headerID: {id}, headerTimestamp: {timestamp}, headerSignature: {signatures}}
		err := Verify(h, body, []string{hmacKey.Text, edKey.Text}, now, 0)
		if !errors.Is(err, ErrSignature) && !errors.Is(err, ErrTime) {
			t.Errorf("got %v", err)
		}
	})
}
