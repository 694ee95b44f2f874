package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
)

// R1, V3: every page and every form of the console lets in whom testdata/rights.txt says, and nobody
// else. The yard can be reached by others: on loopback alone the console is open.
func TestRightsAtTheConsole(t *testing.T) {
	y := newConsoleYard(t)
	y.compare(t, func(api string) bool { return api == "console" })
}

// consoleYard is a yard whose console is asked by who has signed in with each credential, as far as one
// can.
type consoleYard struct {
	*rightsYard
	sessions map[string]*http.Cookie // by policy
}

func newConsoleYard(t *testing.T) *consoleYard {
	t.Helper()
	y := &consoleYard{
		rightsYard: newRightsYard(t, func(c *server.Config) { c.HTTP, c.AllowPlaintext = "0.0.0.0:0", true }),
		sessions:   map[string]*http.Cookie{},
	}
	for column, policy := range map[string]string{"send": "sender", "listen": "listener", "manage": "manager", "ownHub": "own", "otherHub": "other"} {
		y.credentials[column] = func(r *http.Request, rt frame.Route) { y.show(r, rt, policy) }
	}
	sent := admin.Batch{Events: []json.RawMessage{json.RawMessage(`{"body":"to be sent again"}`)}}
	testkit.Must(t, testkit.Err(y.client.Send(t.Context(), "orders", sent)))
	ended := y.signIn("manager")
	testkit.Equal(t, y.status(http.MethodPost, "/console/signout", url.Values{}, ended), http.StatusSeeOther)
	y.credentials["expired"] = func(r *http.Request, rt frame.Route) { fill(r, rt); r.AddCookie(ended) }
	y.credentials["cookie"] = func(r *http.Request, rt frame.Route) {
		y.show(r, rt, "manager")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}
	for _, column := range []string{"none", "metrics", "topicKey", "otherTopic", "blobKey"} {
		shown := y.credentials[column]
		y.credentials[column] = func(r *http.Request, rt frame.Route) { fill(r, rt); shown(r, rt) }
	}
	return y
}

// show shows the cookie of who has signed in by a policy, which is good still: requests before it may
// have deleted the policy with its hub, or signed out.
func (y *consoleYard) show(r *http.Request, rt frame.Route, policy string) {
	fill(r, rt)
	if y.sessions[policy] == nil || y.status(http.MethodGet, "/console/hubs", nil, y.sessions[policy]) != http.StatusOK {
		y.restore()
		y.sessions[policy] = y.signIn(policy)
	}
	r.AddCookie(y.sessions[policy])
}

// fill fills in a form, so that the API is what judges it.
func fill(r *http.Request, rt frame.Route) {
	if r.Method != http.MethodPost || rt.Path == "/console/signin" { // where a wrong key is answered late
		return
	}
	form := url.Values{
		"step": {"act"}, "name": {"made"}, "partitions": {"1"}, "age": {"48h"}, "body": {"hello"}, "to": {"earliest"}, "schema": {"cloudevents"},
		"hub": {"orders"}, "topic": {"invoices"}, "endpoint": {"http://127.0.0.1:1/"}, "attempts": {"3"}, "rights": {"Listen"}, "key": {"primary"},
	}
	if path.Base(rt.Path) == "delete" { // what is deleted is written out
		form.Set("name", path.Base(path.Dir(r.URL.Path)))
	}
	if strings.HasPrefix(rt.Path, "/console/topics/") {
		form.Set("key", "key1")
	}
	text := form.Encode()
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
}

// status asks the console with a cookie.
func (y *consoleYard) status(method, path string, form url.Values, cookie *http.Cookie) int {
	y.t.Helper()
	r := testkit.Value(http.NewRequestWithContext(y.t.Context(), method, y.base.String()+path, strings.NewReader(form.Encode())))(y.t)
	r.AddCookie(cookie)
	response := testkit.Value(http.DefaultTransport.RoundTrip(r))(y.t)
	testkit.Must(y.t, response.Body.Close())
	return response.StatusCode
}
