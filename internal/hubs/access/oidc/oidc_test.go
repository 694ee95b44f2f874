package oidc

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// open makes a verifier that asks as often as it likes.
func open(t *testing.T, i *issuer) *Verifier {
	t.Helper()
	v := patient(t, i)
	v.keys.pause = 0
	return v
}

// patient makes a verifier that asks as often as it should.
func patient(t *testing.T, i *issuer) *Verifier {
	t.Helper()
	v, err := New(Config{Issuer: i.URL, Audience: "yard", Transport: i, Log: testkit.Quiet()})
	testkit.Must(t, err)
	t.Cleanup(v.Close)
	return v
}

// H9: a good token gives what its claims say, until it ends.
func TestGoodToken(t *testing.T) {
	for _, key := range []signingKey{newKey(t, "ec"), newRSAKey(t, "rsa")} {
		i := newIssuer(newKey(t, "other"), key)
		v := open(t, i)
		end := time.Now().Add(10 * time.Minute).Truncate(time.Second)
		grant, err := v.Verify(t.Context(), key.sign(t, i.URL, map[string]any{
			"roles": []string{"Send:Orders", "Reader"}, "scp": "Listen", "exp": end.Unix(), "aud": []string{"x", "yard"},
		}))
		testkit.Must(t, err)
		want := []auth.Scope{{Path: "orders", Rights: auth.Send}, {Rights: auth.Listen}}
		testkit.Slices(t, grant.Scopes, want, "got %+v", grant)
		testkit.Equal(t, grant.Holder, "tester")
		testkit.Equal(t, grant.Expires.Equal(end), true)
	}
}

func TestRefusedTokens(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "k")
	i := newIssuer(key)
	v := open(t, i)
	good := key.sign(t, i.URL, nil)
	testkit.Must(t, testkit.Err(v.Verify(t.Context(), good)))
	public, err := x509.MarshalPKIXPublicKey(key.private.Public())
	testkit.Must(t, err)
	secret := jose.SigningKey{Algorithm: jose.HS256, Key: public}
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	tests := []struct {
		what, token string
		want        error
	}{
		{"another issuer", key.sign(t, "https://elsewhere.example", nil), auth.ErrSignature},
		{"no issuer", key.sign(t, i.URL, map[string]any{"iss": nil}), auth.ErrSignature},
		{"another audience", key.sign(t, i.URL, map[string]any{"aud": "other"}), auth.ErrAudience},
		{"no audience", key.sign(t, i.URL, map[string]any{"aud": nil}), auth.ErrAudience},
		{"a key of the same name that is not the issuer's", stranger.sign(t, i.URL, nil), auth.ErrSignature},
		{"a key of another name", newKey(t, "x").sign(t, i.URL, nil), auth.ErrSignature},
		{"expired", key.sign(t, i.URL, map[string]any{"exp": 1700003600}), auth.ErrExpired},
		{"without an end", key.sign(t, i.URL, map[string]any{"exp": nil}), auth.ErrMalformed},
		{"not good yet", key.sign(t, i.URL, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), auth.ErrSignature},
		{"not signed", none + "." + parts[1] + ".", auth.ErrMalformed},
		{"not signed, with the signature of another", none + "." + parts[1] + "." + parts[2], auth.ErrMalformed},
		{"the public key as a shared secret", signWith(t, secret, "k", map[string]any{"iss": i.URL, "aud": "yard"}), auth.ErrMalformed},
		{"other claims under the signature", parts[0] + "." + strings.Split(key.sign(t, i.URL, map[string]any{"sub": "admin"}), ".")[1] + "." + parts[2], auth.ErrSignature},
		{"a word", "Sanitized", auth.ErrMalformed},
		{"nothing", "", auth.ErrMalformed},
		{"dots", "..", auth.ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant, err := v.Verify(t.Context(), tt.token)
			if !errors.Is(err, tt.want) || len(grant.Scopes) != 0 {
				t.Errorf("got %+v, %v", grant, err)
			}
		})
	}
	_, err = v.Verify(t.Context(), key.sign(t, i.URL, map[string]any{"exp": 1700003600}))
	var expired *auth.ExpiredError
	if !errors.As(err, &expired) || expired.At.Unix() != 1700003600 {
		t.Errorf("the error does not say when it ended: %v", err)
	}
}

// A key that is shown for something else signs nothing.
func TestKeysForSomethingElse(t *testing.T) {
	key := newKey(t, "k")
	i := newIssuer(key)
	i.keys[0].Use = "enc"
	testkit.ErrorIs(t, testkit.Err(open(t, i).Verify(t.Context(), key.sign(t, i.URL, nil))), auth.ErrSignature)
}

// A token that is none is refused without a question to the issuer.
func TestNonsenseIsNotAskedAbout(t *testing.T) {
	i := newIssuer()
	testkit.ErrorIs(t, testkit.Err(open(t, i).Verify(t.Context(), "nonsense")), auth.ErrMalformed)
	testkit.Equal(t, i.questions(discovery), 0, "questions")
}

// Tokens of a new key are good as soon as the issuer shows it.
func TestRotatedKeys(t *testing.T) {
	old, fresh := newKey(t, "old"), newKey(t, "fresh")
	i := newIssuer(old)
	v := open(t, i)
	check := func(what string, key signingKey, want error) {
		t.Helper()
		testkit.ErrorIs(t, testkit.Err(v.Verify(t.Context(), key.sign(t, i.URL, nil))), want, "%s", what)
	}
	check("the first", old, nil)
	check("a later one, too early", fresh, auth.ErrSignature)
	i.show(old, fresh)
	check("the later one", fresh, nil)
	check("the first still", old, nil)
}

// An issuer that is down is asked again, and stops nobody.
func TestIssuerThatIsDown(t *testing.T) {
	key, fresh := newKey(t, "k"), newKey(t, "fresh")
	i := newIssuer(key)
	v := open(t, i)
	check := func(what string, key signingKey, want error) {
		t.Helper()
		testkit.ErrorIs(t, testkit.Err(v.Verify(t.Context(), key.sign(t, i.URL, nil))), want, "%s", what)
	}
	i.set(func() { i.down = true })
	check("when it is down", key, auth.ErrUnavailable)
	i.set(func() { i.down = false })
	check("when it is up", key, nil)
	i.set(func() { i.down = true })
	check("when it is down, with a key known", key, nil)
	check("when it is down, with a new key", fresh, auth.ErrUnavailable)
}

// A closed verifier asks nobody.
func TestClosedVerifier(t *testing.T) {
	key := newKey(t, "k")
	i := newIssuer(key)
	v := open(t, i)
	v.Close()
	testkit.ErrorIs(t, testkit.Err(v.Verify(t.Context(), key.sign(t, i.URL, nil))), auth.ErrUnavailable)
}

// A document that is not the issuer's own is not trusted.
func TestIssuerThatIsAnother(t *testing.T) {
	key := newKey(t, "k")
	for what, change := range map[string]map[string]any{
		"another name":            {"issuer": "https://elsewhere.example"},
		"no keys":                 {"jwks_uri": ""},
		"keys that are not there": {"jwks_uri": "https://login.example.net/gone"},
		"keys that are no URL":    {"jwks_uri": "https://%zz"},
		"keys that are none":      {"jwks_uri": "https://login.example.net" + discovery},
	} {
		t.Run(what, func(t *testing.T) {
			i := newIssuer(key)
			i.set(func() {
				for name, value := range change {
					i.document[name] = value
				}
			})
			testkit.ErrorIs(t, testkit.Err(open(t, i).Verify(t.Context(), key.sign(t, i.URL, nil))), auth.ErrUnavailable)
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for what, cfg := range map[string]Config{
		"no issuer":          {Audience: "yard"},
		"an issuer's name":   {Issuer: "login.example.net", Audience: "yard"},
		"another scheme":     {Issuer: "ftp://login.example.net", Audience: "yard"},
		"no audience":        {Issuer: "https://login.example.net"},
		"an issuer no URL":   {Issuer: "https://%zz", Audience: "yard"},
		"a path and no host": {Issuer: "https:///tenant", Audience: "yard"},
	} {
		t.Run(what, func(t *testing.T) {
			if v, err := New(cfg); err == nil || v != nil {
				t.Errorf("%s: %v, %v", what, v, err)
			}
		})
	}
	testkit.Check(t, testkit.Err(New(Config{Issuer: "https://login.example.net/tenant/v2.0", Audience: "yard"})))
}

// Many at once find the issuer together.
func TestManyAtOnce(t *testing.T) {
	key := newKey(t, "k")
	i := newIssuer(key)
	v := open(t, i)
	token := key.sign(t, i.URL, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			testkit.Check(t, testkit.Err(v.Verify(t.Context(), token)))
		})
	}
	all.Wait()
	testkit.Equal(t, i.questions(discovery), 1, "it was looked for")
}
