package v1

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func basic(policy, key string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(policy+":"+key))
}

// signed is a signature of the root policy, by the well-known key.
func signed(path string, life time.Duration) string {
	return auth.Sign("http://localhost/"+path, auth.RootPolicy, auth.DevelopmentKey, time.Now().Add(life))
}

// policy makes one; hub is empty for the namespace.
func (y *yard) policy(hub, name string, rights auth.Rights) access.Policy {
	y.t.Helper()
	p, err := y.registry.Create(y.t.Context(), access.Policy{Hub: hub, Name: name, Rights: rights})
	testkit.Must(y.t, err)
	return p
}

// in gives a route's path with names in it, in a hub.
func (rt route) in(hub string) string {
	return strings.NewReplacer("{hub}", hub, "{group}", "billing", "{partition}", "0", "{publisher}", "me", "{policy}", "other").Replace(rt.path)
}

// turnedAway insists that a route refuses in its own form, and says how.
func (y *yard) turnedAway(rt route, path string, status int, kind string) {
	y.t.Helper()
	if rt.eventHubs {
		status = http.StatusUnauthorized
	}
	got := y.do(rt.method, path, "{}")
	if got.status != status {
		y.t.Errorf("%s %s answered %d, want %d %s\n%s", rt.method, path, got.status, status, kind, got.body)
		return
	}
	if asked := got.header.Values("Www-Authenticate"); (status == http.StatusUnauthorized) != slices.Equal(asked, frame.Challenges) {
		y.t.Errorf("%s %s answered %d and asks for %q", rt.method, path, status, asked)
	}
	var e struct{ Detail string }
	if rt.eventHubs {
		testkit.Must(y.t, xml.Unmarshal(got.body, &e))
		if !strings.HasPrefix(e.Detail, serviceWords[kind]) {
			y.t.Errorf("%s says %q, which does not begin with %q", path, e.Detail, serviceWords[kind])
		}
		return
	}
	var p admin.Problem
	got.json(y.t, &p)
	if p.Type != problemPrefix+kind || p.Detail == "" || p.Next == "" {
		y.t.Errorf("%s %s answered %+v, want %s", rt.method, path, p, kind)
	}
}

// Every route refuses whoever shows nothing, nothing good, or nothing good enough; and
// what is refused does nothing.
func TestEveryRouteTurnsAway(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.hub("other", 1)
	ours := y.policy("orders", "ours", auth.Manage)
	theirs := y.policy("other", "theirs", auth.Manage)
	limited := map[string]access.Policy{
		"Send":   y.policy("", "listener", auth.Listen),
		"Listen": y.policy("", "sender", auth.Send),
		"Manage": y.policy("", "worker", auth.Send|auth.Listen),
	}
	for _, rt := range y.handler.routes() {
		t.Run(rt.method+" "+rt.path, func(t *testing.T) {
			y := y.in(t)
			if rt.need.Reach == frame.Nobody {
				y.as("").want(200, rt.method, rt.path, nil)
				return
			}
			for _, path := range []string{rt.in("orders"), rt.in("nowhere")} { // whether a hub is there is not told either
				y.as("").turnedAway(rt, path, 401, "no-token")
				y.as("").turnedAway(rt, path+"?access_token=x&"+strings.TrimPrefix(signed("", time.Hour), "SharedAccessSignature "), 401, "no-token")
				y.as(basic(auth.RootPolicy, "wrong")).turnedAway(rt, path, 401, "invalid-signature")
				y.as(basic("nobody", auth.DevelopmentKey)).turnedAway(rt, path, 401, "invalid-signature")
				y.as(strings.Replace(signed("", time.Hour), "localhost", "elsewhere", 1)).turnedAway(rt, path, 401, "invalid-signature")
				y.as(signed("", -time.Second)).turnedAway(rt, path, 401, "expired-token")
				y.as("SharedAccessSignature sr=x").turnedAway(rt, path, 401, "malformed-token")
				y.as("Basic !").turnedAway(rt, path, 401, "malformed-token")
				y.as("Bearer abc").turnedAway(rt, path, 401, "unsupported-token")
				y.as("Digest x").turnedAway(rt, path, 401, "unsupported-token")
				if rt.need.Reach == frame.Any {
					continue
				}
				y.as(signed("other", time.Hour)).turnedAway(rt, path, 403, "wrong-audience")
				y.as(basic(theirs.Name, theirs.Primary)).turnedAway(rt, path, 403, "wrong-audience")
				if rt.need.Reach == frame.Namespace {
					y.as(basic(ours.Name, ours.Primary)).turnedAway(rt, path, 403, "wrong-audience")
				}
				if less, ok := limited[rt.need.Rights()]; ok {
					y.as(basic(less.Name, less.Secondary)).turnedAway(rt, path, 403, "insufficient-rights")
				}
			}
		})
	}
	if n := len(y.stored("orders", "0")) + len(y.broker.Hubs()); n != 2 {
		t.Errorf("what was refused stored or made or deleted something: %d", n)
	}
	policies, err := y.registry.Policies("")
	testkit.Must(t, err)
	testkit.Equal(t, len(policies), 4, "what was refused changed the policies: %v", policies)
}

// Every route lets in whoever has just what it needs, in each form of authorization.
func TestEveryRouteLetsIn(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	for _, rights := range []auth.Rights{auth.Send, auth.Listen, auth.Manage} {
		everywhere := y.policy("", "All"+rights.String(), rights)
		hub := y.policy("orders", "Hub"+rights.String(), rights)
		for _, rt := range y.handler.routes() {
			enough := len(rt.need.OneOf) == 0 || slices.ContainsFunc(rt.need.OneOf, rights.Has)
			if !enough || rt.method == "DELETE" || rt.need.Reach == frame.Nobody {
				continue
			}
			shown := []string{
				basic(everywhere.Name, everywhere.Secondary),
				"BASIC" + strings.TrimPrefix(basic(everywhere.Name, everywhere.Primary), "Basic"),
				auth.Sign("sb://some.name:5671/", everywhere.Name, everywhere.Primary, time.Now().Add(time.Hour)),
			}
			if rt.need.Reach != frame.Namespace {
				shown = append(shown, basic(hub.Name, hub.Primary),
					auth.Sign("amqps://some.name/ORDERS", everywhere.Name, everywhere.Primary, time.Now().Add(time.Hour)),
					strings.Replace(auth.Sign("http://localhost/orders", hub.Name, hub.Secondary, time.Now().Add(time.Hour)), "SharedAccess", "sharedaccess", 1))
			}
			for _, authorization := range shown {
				if got := y.as(authorization).do(rt.method, rt.in("Orders"), "{"); got.status == 401 || got.status == 403 {
					t.Errorf("%s %s refused %s to %s: %s", rt.method, rt.path, rights, authorization, got.body)
				}
			}
		}
	}
}

// H8: tokens of the REST API may be for one publisher, or for one partition.
func TestRESTTokensAreAsNarrowAsTheirResource(t *testing.T) {
	y := newYard(t)
	y.hub("shop/orders", 2)
	post := func(status int, path, resource string) {
		t.Helper()
		y.as(signed(resource, time.Hour)).want(status, "POST", path, "x", "Content-Type", "text/plain")
	}
	post(201, "/Shop/orders/Publishers/Dev1/messages", "shop/orders/publishers/Dev1")
	for _, other := range []string{"dev1", "DEV1", "Dev1%2Fx", "Dev1.", ".."} { // R1
		post(401, "/shop/orders/publishers/"+other+"/messages", "shop/orders/publishers/Dev1")
	}
	for _, bad := range []string{"a%2Fb", "..", "a..b", "a%2F%2Fb", "abc."} { // R1
		y.want(400, "POST", "/shop/orders/publishers/"+bad+"/messages", "x", "Content-Type", "text/plain")
	}
	post(201, "/shop%2Forders/partitions/1/messages", "shop/orders/partitions/1")
	post(201, "/shop/orders/publishers/dev1/messages", "shop/orders")
	post(401, "/shop/orders/publishers/dev2/messages", "shop/orders/publishers/dev1")
	post(401, "/shop/orders/publishers/dev10/messages", "shop/orders/publishers/dev1")
	post(401, "/shop/orders/messages", "shop/orders/publishers/dev1")
	post(401, "/shop/orders/partitions/0/messages", "shop/orders/partitions/1")
}

// A hub whose name would look like a part of another is not made.
func TestNoHubIsNamedLikeAPartOfAnother(t *testing.T) {
	y := newYard(t)
	y.hub("a", 1)
	for _, name := range []string{"a/partitions/0", "a/Publishers", "a/b/CONSUMERGROUPS/g", "a/messages"} {
		y.refused(400, "reserved-name", "POST", "/api/v1/hubs", map[string]any{"name": name})
	}
	y.want(201, "POST", "/api/v1/hubs", `{"name":"messages","partitions":1}`)
	y.want(201, "POST", "/messages/messages", "x", "Content-Type", "text/plain")
	testkit.Equal(t, len(y.stored("messages", "0")), 1, "events were stored")
}

// H9: who may manage a hub gains nothing by deleting it.
func TestDeletingAHubOpensNoOther(t *testing.T) {
	y := newYard(t)
	y.hub("a", 1)
	y.hub("a/b", 1)
	p := y.policy("a", "p", auth.Manage)
	for _, authorization := range []string{basic(p.Name, p.Primary), signed("a", time.Hour)} {
		y.as(authorization).want(403, "GET", "/api/v1/hubs/a%2Fb/policies", nil)
	}
	y.as(basic(p.Name, p.Primary)).want(204, "DELETE", "/api/v1/hubs/a", nil)
	y.as(basic(p.Name, p.Primary)).want(401, "GET", "/api/v1/hubs/a%2Fb/policies", nil)
	y.as(signed("a", time.Hour)).want(403, "GET", "/api/v1/hubs/a%2Fb/policies", nil)
	y.as(signed("a", time.Hour)).want(404, "GET", "/api/v1/hubs/a/policies", nil)
}

// bearing is access that knows one bearer token, with these rights to the hub orders.
type bearing struct {
	Access
	rights auth.Rights
}

func (b bearing) Token(_ context.Context, token, _ string) (auth.Grant, error) {
	if token != "a.b.c" {
		return auth.Grant{}, auth.ErrMalformed
	}
	grant := auth.Grant{Scopes: []auth.Scope{{Path: "orders", Rights: b.rights}}, Holder: "somebody"}
	return grant.While(func(auth.Scope) bool { return true }), nil
}

// Bearer tokens are shown without their scheme, and one without rights opens nothing.
func TestBearerTokens(t *testing.T) {
	y := newYard(t, func(c *Config) { c.Access = bearing{c.Access, auth.Send} })
	y.hub("orders", 1)
	y.as("bearer  a.b.c").want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
	y.as("Bearer a.b.c").refused(403, "insufficient-rights", "GET", "/api/v1/hubs/orders/events", nil)
	y.as("Bearer a.b.d").refused(401, "malformed-token", "GET", "/api/v1", nil)
	y = newYard(t, func(c *Config) { c.Access = bearing{c.Access, 0} })
	y.as("Bearer a.b.c").refused(403, "insufficient-rights", "GET", "/api/v1", nil)
}

// A refusal says how to be let in: in development that is no secret.
func TestRefusalsSayHowToEnter(t *testing.T) {
	y := newYard(t)
	const known = "curl -u RootManageSharedAccessKey:SAS_KEY_VALUE"
	if p := y.as("").refused(401, "no-token", "GET", "/api/v1", nil); !strings.Contains(p.Next, known) {
		t.Errorf("in development it says %q", p.Next)
	}
	rest := y.as("").want(401, "POST", "/orders/messages", "x", "Content-Type", "text/plain")
	if want := "<Error><Code>401</Code><Detail>MissingToken: "; !strings.HasPrefix(string(rest.body), want) || !strings.Contains(string(rest.body), known) {
		t.Errorf("the REST API says %s", rest.body)
	}
	y = newYard(t, func(c *Config) { c.Access = inEarnest{c.Access} })
	p := y.as("").refused(401, "no-token", "GET", "/api/v1", nil)
	if strings.Contains(p.Next, auth.DevelopmentKey) || !strings.Contains(p.Next, "curl -u POLICY:KEY") {
		t.Errorf("beyond development it says %q", p.Next)
	}
}

// inEarnest is access that says it is not for development.
type inEarnest struct{ Access }

func (inEarnest) Development() bool { return false }

// Two headers are one too many: the listener and a proxy before it might take different ones.
func TestOneAuthorizationOnly(t *testing.T) {
	y := newYard(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/v1", nil)
	testkit.Must(t, err)
	req.Header["Authorization"] = []string{y.authorization, y.authorization}
	resp, err := y.client.Do(req)
	testkit.Must(t, err)
	defer resp.Body.Close()
	testkit.Equal(t, resp.StatusCode, 401, "answered")
}

// Who may see a part of the hubs is shown that part.
func TestListedAreTheHubsThatAGrantReaches(t *testing.T) {
	y := newYard(t)
	for _, name := range []string{"Orders", "orders2", "alarms"} {
		y.hub(name, 1)
	}
	sender := y.policy("alarms", "sender", auth.Send)
	for _, tt := range []struct{ what, authorization, want string }{
		{"the namespace", y.authorization, "alarms Orders orders2"},
		{"a hub, by signature", signed("orders", time.Hour), "Orders"},
		{"a hub, by its policy", basic(sender.Name, sender.Primary), "alarms"},
		{"a part of a hub", signed("orders/publishers/me", time.Hour), ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			list := read[struct{ Hubs []admin.Hub }](t, y.in(t).as(tt.authorization).want(200, "GET", "/api/v1/hubs", nil))
			var names []string
			for _, h := range list.Hubs {
				names = append(names, h.Name)
			}
			testkit.Equal(t, strings.Join(names, " "), tt.want, "listed")
		})
	}
}

// Refused requests are counted by reason, at the guard and behind it.
func TestRefusalsAreCounted(t *testing.T) {
	y := newYard(t)
	y.as("").want(401, "GET", "/api/v1", nil)
	y.as("").want(401, "POST", "/orders/messages", "x", "Content-Type", "text/plain")
	y.as(signed("other", time.Hour)).want(403, "GET", "/metrics", nil)
	y.want(403, "POST", "/api/v1/hubs", "{}", "Sec-Fetch-Site", "cross-site")
	for reason, want := range map[string]float64{"no-token": 2, "wrong-audience": 1, "cross-origin": 1} {
		testkit.Equal(t, testutil.ToFloat64(y.handler.metrics.refused.WithLabelValues(reason)), want,
			"refused for %s", reason)
	}
}
