package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/eventyard/eventyard/internal/testkit"
)

// issuer is one that is reached in memory, also inside a synctest bubble.
type issuer struct {
	URL string

	mu       sync.Mutex
	down     bool              // answers with an error; guarded by mu
	hung     string            // the path at which it does not answer at all; guarded by mu
	document map[string]any    // what discovery tells; guarded by mu
	keys     []jose.JSONWebKey // those it shows; guarded by mu
	asked    map[string]int    // questions by path; guarded by mu
}

const discovery = "/.well-known/openid-configuration"

func newIssuer(keys ...signingKey) *issuer {
	i := &issuer{URL: "https://login.example.net", asked: make(map[string]int)}
	i.document = map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
	i.show(keys...)
	return i
}

// RoundTrip makes it the transport by which it is reached.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.hangs(r.URL.Path) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	i.serve(w, r)
	return w.Result(), nil
}

func (i *issuer) hangs(path string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hung != path {
		return false
	}
	i.asked[path]++
	return true
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked[r.URL.Path]++
	switch {
	case i.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/keys":
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: i.keys})
	case r.URL.Path == discovery:
		json.NewEncoder(w).Encode(i.document)
	default:
		http.NotFound(w, r)
	}
}

// show makes the issuer show the public halves of these keys only.
func (i *issuer) show(keys ...signingKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = nil
	for _, k := range keys {
		i.keys = append(i.keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Use: "sig"})
	}
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) questions(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

type signingKey struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

func newKey(t *testing.T, id string) signingKey {
	t.Helper()
	private := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return signingKey{id, jose.ES256, private}
}

func newRSAKey(t *testing.T, id string) signingKey {
	t.Helper()
	private := testkit.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	return signingKey{id, jose.RS256, private}
}

// sign makes a token of an issuer, good for an hour, with some claims changed; nil takes one away.
func (k signingKey) sign(t *testing.T, issuer string, changes map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": issuer, "aud": "yard", "sub": "tester", "roles": []string{"Manage"},
		"exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	key := jose.SigningKey{Algorithm: k.algorithm, Key: k.private}
	return signWith(t, key, k.id, claims)
}

func signWith(t *testing.T, key jose.SigningKey, id string, claims map[string]any) string {
	t.Helper()
	signer := testkit.Value(jose.NewSigner(key, (&jose.SignerOptions{}).WithHeader("kid", id)))(t)
	return testkit.Value(jwt.Signed(signer).Claims(claims).Serialize())(t)
}
