package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// issuer is a small OpenID Connect provider: who comes is signed in at once.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu    sync.Mutex
	codes map[string]url.Values // what each code was asked for with; guarded by mu
	roles []string              // of who signs in; guarded by mu
	nonce string                // in place of the one that was asked for; guarded by mu
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, codes: map[string]url.Values{}, roles: []string{"Manage"}}
	i.key = testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &i.key.PublicKey, KeyID: "one", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// authorize sends who comes back with a code.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	i.mu.Lock()
	i.codes[code] = q
	i.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

// token gives tokens for a code, once, to who can show what its challenge was made of.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
		asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		i.answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	nonce := asked.Get("nonce")
	if i.nonce != "" {
		nonce = i.nonce
	}
	i.answer(w, map[string]any{
		"token_type": "Bearer", "expires_in": 3600,
		"id_token":     i.sign(map[string]any{"aud": "console", "nonce": nonce}),
		"access_token": i.sign(map[string]any{"aud": "yard", "roles": i.roles}),
	})
}

func (i *issuer) sign(claims map[string]any) string {
	signer := testkit.Value(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "one"}}, nil))(i.t)
	claims["iss"], claims["sub"], claims["exp"], claims["iat"] = i.URL, "ada", time.Now().Add(time.Hour).Unix(), time.Now().Unix()
	return testkit.Value(jwt.Signed(signer).Claims(claims).Serialize())(i.t)
}

func (i *issuer) set(how func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	how()
}

// signedBy is a yard at whose console one signs in by the issuer.
func signedBy(t *testing.T, i *issuer, changes ...func(*server.Config)) *beyond {
	t.Helper()
	return &beyond{t: t, Yard: servertest.Start(t, append(changes, func(c *server.Config) {
		c.HTTP, c.AllowPlaintext = "0.0.0.0:0", true
		c.OIDC = server.OIDC{Issuer: i.URL, Audience: "yard", ClientID: "console", Scope: "yard/all"}
	})...)}
}

func readAll(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	return string(testkit.Value(io.ReadAll(response.Body))(t))
}

// away begins at the console, is signed in at the issuer, and gives the address that it sends back to,
// with the cookie that was kept.
func (b *beyond) away() (back string, kept *http.Cookie) {
	b.t.Helper()
	response := b.ask("GET", b.url("http", "/console/signin/issuer?to=/console/hubs"), nil, nil)
	testkit.Must(b.t, response.Body.Close())
	testkit.MustEqual(b.t, response.StatusCode, http.StatusSeeOther)
	testkit.MustEqual(b.t, len(response.Cookies()), 1, "cookies")
	kept = response.Cookies()[0]
	response = b.ask("GET", response.Header.Get("Location"), nil, nil)
	testkit.Must(b.t, response.Body.Close())
	testkit.MustEqual(b.t, response.StatusCode, http.StatusFound)
	return response.Header.Get("Location"), kept
}

// V3: one signs in at the console by the issuer whose tokens the API takes, with the rights that they
// have; and a session of that goes as any other.
func TestSigningInByAnIssuer(t *testing.T) {
	i := newIssuer(t)
	b := signedBy(t, i)
	page := b.ask("GET", b.url("http", "/console/signin"), nil, nil)
	testkit.That(t, strings.Contains(readAll(t, page), "Sign in by 127.0.0.1"), "the page does not say that one can")
	back, kept := b.away()
	testkit.That(t, strings.HasPrefix(back, b.url("http", "/console/signin/callback?")), "it sends back to %s", back)
	response := b.ask("GET", back, nil, kept)
	testkit.Must(t, response.Body.Close())
	testkit.MustEqual(t, response.StatusCode, http.StatusSeeOther)
	testkit.Equal(t, response.Header.Get("Location"), "/console/hubs")
	var session *http.Cookie
	for _, c := range response.Cookies() {
		if c.Name == "eventyard" {
			session = c
		}
	}
	testkit.MustThat(t, session != nil && session.HttpOnly, "there is no session: %v", response.Cookies())
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, session), http.StatusOK, "a page")
	testkit.Equal(t, b.status("POST", b.url("http", "/console/new/hub"), url.Values{"name": {"made"}, "partitions": {"1"}}, session), http.StatusSeeOther, "a form")
	testkit.Equal(t, b.status("GET", back, nil, kept), http.StatusUnauthorized, "the code once more")
}

// V3: behind a proxy that ends TLS the issuer sends back to the public address, and what is kept of the way and
// of the session is bound to it: a cookie that anybody on the way may have set is none.
func TestSigningInByAnIssuerBehindAProxy(t *testing.T) {
	i := newIssuer(t)
	b := signedBy(t, i, func(c *server.Config) { c.PublicURL = "https://yard.example.com/" })
	byProxy := func(r *http.Request) { r.Host = "yard.example.com" }
	end := func(response *http.Response) *http.Response {
		testkit.Must(t, response.Body.Close())
		return response
	}
	begun := end(b.ask("GET", b.url("http", "/console/signin/issuer?to=/console/hubs"), nil, nil, byProxy))
	testkit.MustEqual(t, len(begun.Cookies()), 1, "cookies")
	kept := begun.Cookies()[0]
	testkit.That(t, kept.Name == "__Host-eventyard-away" && kept.Secure, "what is kept of the way is %v", kept)
	back := end(b.ask("GET", begun.Header.Get("Location"), nil, nil)).Header.Get("Location")
	path, public := strings.CutPrefix(back, "https://yard.example.com")
	testkit.MustThat(t, public && strings.HasPrefix(path, "/console/signin/callback?"), "it sends back to %s", back)
	var session *http.Cookie
	for _, c := range end(b.ask("GET", b.url("http", path), nil, kept, byProxy)).Cookies() {
		if c.MaxAge > 0 {
			session = c
		}
	}
	testkit.MustThat(t, session != nil && session.Name == "__Host-eventyard" && session.Secure, "the session's cookie is %v", session)
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, session, byProxy), http.StatusOK, "a page")
	plain := &http.Cookie{Name: "eventyard", Value: session.Value}
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, plain, byProxy), http.StatusSeeOther, "a page for a plain cookie")
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, plain), http.StatusOK, "a page for a plain cookie, without the proxy")
}

// V3: what comes back without what the browser kept, with another's, with a token for another question, or
// of somebody without rights, signs nobody in, and says why.
func TestWhatTheIssuerSendsIsChecked(t *testing.T) {
	i := newIssuer(t)
	b := signedBy(t, i)
	refused := func(what, address string, cookie *http.Cookie, says string) {
		t.Helper()
		response := b.ask("GET", address, nil, cookie)
		testkit.Equal(t, response.StatusCode, http.StatusUnauthorized, what)
		testkit.That(t, strings.Contains(readAll(t, response), says), "%s does not say %q", what, says)
		for _, c := range response.Cookies() {
			testkit.That(t, c.Name != "eventyard", "%s begins a session", what)
		}
	}
	back, kept := b.away()
	other, _ := b.away()
	refused("no cookie", back, nil, "not for this browser")
	refused("another's state", other, kept, "not for this browser")
	refused("an error", b.url("http", "/console/signin/callback?error=access_denied"), kept, "access_denied")
	i.set(func() { i.nonce = "another" })
	back, kept = b.away()
	refused("another's token", back, kept, "not for this browser")
	i.set(func() { i.nonce, i.roles = "", []string{"Reader"} })
	back, kept = b.away()
	refused("nobody's rights", back, kept, "gives you no right here")
}
