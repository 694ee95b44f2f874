package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// beyond is a yard that others can reach, so that its console wants to know who is there.
type beyond struct {
	*servertest.Yard
	t      *testing.T
	client *admin.Client
	policy admin.Policy
}

func newBeyond(t *testing.T) *beyond {
	t.Helper()
	y := servertest.Start(t, func(c *server.Config) {
		c.HTTP, c.HTTPS, c.AllowPlaintext = "0.0.0.0:0", "127.0.0.1:0", true
	})
	b := &beyond{Yard: y, t: t}
	b.client = testkit.Value(admin.New(admin.Config{Server: b.url("http", ""), ConnectionString: y.Access().ConnectionString}))(t)
	t.Cleanup(b.client.Close)
	y.Hub(t, "orders", 2)
	b.policy = testkit.Value(b.client.CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "ops", Rights: []string{"Manage"}}))(t)
	return b
}

func (b *beyond) url(listener, path string) string {
	b.t.Helper()
	at := testkit.Value(url.Parse(b.Addresses()[listener]))(b.t)
	return listener + "://127.0.0.1:" + at.Port() + path
}

// ask sends a request and follows nothing.
func (b *beyond) ask(method, address string, form url.Values, cookie *http.Cookie, changes ...func(*http.Request)) *http.Response {
	b.t.Helper()
	r := testkit.Value(http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode())))(b.t)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	for _, change := range changes {
		change(r)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate is no matter here
	b.t.Cleanup(transport.CloseIdleConnections)
	return testkit.Value(transport.RoundTrip(r))(b.t)
}

func (b *beyond) status(method, address string, form url.Values, cookie *http.Cookie, changes ...func(*http.Request)) int {
	b.t.Helper()
	response := b.ask(method, address, form, cookie, changes...)
	testkit.Must(b.t, response.Body.Close())
	return response.StatusCode
}

// signIn gives the cookie of a new session.
func (b *beyond) signIn(listener string, changes ...func(*http.Request)) *http.Cookie {
	b.t.Helper()
	response := b.ask("POST", b.url(listener, "/console/signin"), url.Values{"policy": {"ops"}, "key": {b.policy.PrimaryKey}, "to": {"/console/hubs"}}, nil, changes...)
	testkit.Must(b.t, response.Body.Close())
	testkit.MustEqual(b.t, response.StatusCode, http.StatusSeeOther)
	testkit.Equal(b.t, response.Header.Get("Location"), "/console/hubs")
	testkit.MustEqual(b.t, len(response.Cookies()), 1, "cookies")
	return response.Cookies()[0]
}

// V3: who is not signed in is led to where one does, and sees and changes nothing; who is signed in is
// by that at the console alone, and nothing that another origin has a browser send is done.
func TestTheConsoleBeyondLoopback(t *testing.T) {
	b := newBeyond(t)
	hubs, hub := b.url("http", "/console/hubs"), url.Values{"name": {"made"}, "partitions": {"1"}}
	response := b.ask("GET", hubs+"?page=0", nil, nil)
	testkit.Must(t, response.Body.Close())
	testkit.Equal(t, response.StatusCode, http.StatusSeeOther)
	testkit.Equal(t, response.Header.Get("Location"), "/console/signin?to=%2Fconsole%2Fhubs%3Fpage%3D0")
	forged := &http.Cookie{Name: "eventyard", Value: strings.Repeat("A", 43)}
	testkit.Equal(t, b.status("GET", hubs, nil, forged), http.StatusSeeOther, "a page for a cookie of one's own")
	testkit.Equal(t, b.status("POST", b.url("http", "/console/new/hub"), hub, nil), http.StatusUnauthorized, "a form of nobody")
	testkit.Equal(t, b.status("GET", b.url("http", "/console/live?at=/console/hubs"), nil, nil), http.StatusUnauthorized, "a stream of nobody")
	withKey := func(r *http.Request) { r.SetBasicAuth("ops", b.policy.PrimaryKey) }
	testkit.Equal(t, b.status("GET", hubs, nil, nil, withKey), http.StatusSeeOther, "a page for a key in a header")

	session := b.signIn("http")
	testkit.That(t, session.HttpOnly && session.SameSite == http.SameSiteLaxMode, "the cookie is %v", session)
	testkit.Equal(t, b.status("GET", hubs, nil, session), http.StatusOK, "a page")
	tossed := func(r *http.Request) {
		r.Header.Set("Cookie", "eventyard=tossed; "+session.Name+"="+session.Value)
	}
	testkit.Equal(t, b.status("GET", hubs, nil, nil, tossed), http.StatusOK, "a page, beside a cookie of another port")
	testkit.Equal(t, b.status("GET", b.url("http", "/api/v1/hubs"), nil, session), http.StatusUnauthorized, "the API by a cookie")
	for name, from := range map[string]func(*http.Request){
		"Sec-Fetch-Site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"Origin":         func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere.example") },
		"a grid's name": func(r *http.Request) {
			r.Header.Set("Origin", "https://elsewhere.example")
			r.Header.Set("WebHook-Request-Origin", "elsewhere.example")
		},
	} {
		testkit.Equal(t, b.status("POST", b.url("http", "/console/new/hub"), hub, session, from), http.StatusForbidden, "a form of another origin, by %s", name)
	}
	testkit.That(t, testkit.Err(b.client.Hub(t.Context(), "made")) != nil, "another origin has made a hub")
	testkit.Equal(t, b.status("POST", b.url("http", "/console/new/hub"), hub, session), http.StatusSeeOther, "a form")
	testkit.Must(t, testkit.Err(b.client.Hub(t.Context(), "made")))
	testkit.Equal(t, b.status("POST", b.url("http", "/console/signout"), url.Values{}, session), http.StatusSeeOther)
	testkit.Equal(t, b.status("GET", hubs, nil, session), http.StatusSeeOther, "a page after signing out")
}

// V3: over TLS the cookie is bound to the host, and never sent without. That holds behind a proxy, too,
// to which the browser uses TLS and which does not use it to the yard.
func TestTheCookieOverTLS(t *testing.T) {
	b := newBeyond(t)
	byProxy := func(r *http.Request) { r.Header.Set("Origin", "https://"+r.URL.Host) }
	for name, session := range map[string]*http.Cookie{"https": b.signIn("https"), "http": b.signIn("http", byProxy)} {
		testkit.That(t, session.Name == "__Host-eventyard" && session.Secure && session.HttpOnly && session.Path == "/" && session.Domain == "", "%s: the cookie is %v", name, session)
		testkit.Equal(t, b.status("GET", b.url(name, "/console/hubs"), nil, session), http.StatusOK, "%s", name)
		testkit.Equal(t, b.status("POST", b.url(name, "/console/signout"), url.Values{}, session), http.StatusSeeOther, "%s: signing out", name)
		testkit.Equal(t, b.status("GET", b.url(name, "/console/hubs"), nil, session), http.StatusSeeOther, "%s: after signing out", name)
	}
	plain := b.signIn("http")
	both := func(r *http.Request) { byProxy(r); r.AddCookie(plain) }
	testkit.Equal(t, b.status("POST", b.url("http", "/console/signout"), url.Values{}, b.signIn("http", byProxy), both), http.StatusSeeOther, "signing out with two cookies")
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, plain), http.StatusSeeOther, "http: the session of the other cookie")
	plain = b.signIn("http")
	testkit.Equal(t, b.status("GET", b.url("https", "/console/hubs"), nil, plain), http.StatusSeeOther, "https: a cookie that anybody on the way may have set")
}

// V3, R2: a connection string signs in as well; a wrong key does not, and wrong ones keep nobody else
// behind the same address out.
func TestSigningIn(t *testing.T) {
	b := newBeyond(t)
	try := func(policy, key string) int {
		return b.status("POST", b.url("http", "/console/signin"), url.Values{"policy": {policy}, "key": {key}}, nil)
	}
	testkit.Equal(t, try("ops", strings.Repeat("k", 1<<20)), http.StatusUnprocessableEntity, "more than a stranger may send")
	testkit.Equal(t, try("", b.Access().ConnectionString), http.StatusSeeOther, "a connection string")
	testkit.Equal(t, try("", "Endpoint=nowhere;"), http.StatusUnauthorized, "no connection string")
	testkit.Equal(t, try("ops", "wrong"), http.StatusUnauthorized, "a wrong key")
	testkit.Equal(t, try("nobody", b.policy.PrimaryKey), http.StatusUnauthorized, "a key of another policy")
	testkit.Equal(t, try("ops", "SAS_KEY_VALUE"), http.StatusUnauthorized, "the well-known key")
	for range 15 {
		testkit.Equal(t, try("ops", "wrong"), http.StatusUnauthorized, "a wrong key")
	}
	testkit.Equal(t, try("ops", b.policy.PrimaryKey), http.StatusSeeOther, "a good key behind an address of wrong ones")
}

// V3: a key that is made anew ends the sessions that it began, and their streams, at once.
func TestARevokedKeyEndsItsSessions(t *testing.T) {
	b := newBeyond(t)
	session := b.signIn("http")
	stream := b.ask("GET", b.url("http", "/console/live?at=/console/hubs"), nil, session)
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	first, err := lines.ReadString('\n')
	testkit.Must(t, err)
	testkit.Equal(t, first, "event: part\n")
	testkit.Must(t, testkit.Err(b.client.RegeneratePolicy(t.Context(), "", "ops", "primary")))
	rest, err := io.ReadAll(lines)
	testkit.Must(t, err)
	testkit.That(t, strings.Contains(string(rest), `"reason":"signed-out"`), "the stream ends with %s", rest)
	testkit.Equal(t, b.status("GET", b.url("http", "/console/hubs"), nil, session), http.StatusSeeOther, "a page")
}
