package v1

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/google/go-cmp/cmp"
)

// withEndpoints gives a listener AMQP neighbours, on the host by which the client came.
func withEndpoints(c *Config) {
	c.Endpoint = func(r *http.Request, tls bool) string {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if tls {
			return "sb://" + host + "/"
		}
		return "sb://" + host + ":5672/"
	}
}

// Policies are made, shown, listed and deleted, those of a hub beside the namespace's.
func TestPolicies(t *testing.T) {
	for _, tt := range []struct{ what, hub, at, root string }{
		{"of the namespace", "", "/api/v1/policies", auth.RootPolicy},
		{"of a hub", "shop/Orders", "/api/v1/hubs/SHOP%2Forders/policies", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			y.hub("shop/Orders", 1)
			made := y.want(201, "POST", tt.at, `{"name":"worker","rights":["send","LISTEN"]}`)
			var got, found admin.Policy
			made.json(t, &got)
			if got.PrimaryKey == "" || got.SecondaryKey == "" || got.PrimaryKey == got.SecondaryKey {
				t.Errorf("its keys are %q and %q", got.PrimaryKey, got.SecondaryKey)
			}
			want := admin.Policy{Hub: tt.hub, Name: "worker", Rights: []string{"Send", "Listen"},
				Created: got.Created, PrimaryKey: got.PrimaryKey, SecondaryKey: got.SecondaryKey}
			testkit.Diff(t, want, got)
			y.want(200, "GET", made.header.Get("Location"), nil).json(t, &found)
			if diff := cmp.Diff(got, found); diff != "" {
				t.Error("found otherwise than made:", diff)
			}
			testkit.Equal(t, y.policies(tt.at), strings.TrimSpace(tt.root+" worker"), "listed")
			key := y.as(basic("worker", got.SecondaryKey))
			key.want(200, "GET", "/api/v1/hubs/shop%2Forders", nil)
			key.refused(403, "insufficient-rights", "PATCH", "/api/v1/hubs/shop%2Forders", `{}`)

			y.want(204, "DELETE", tt.at+"/worker", nil)
			testkit.Equal(t, y.policies(tt.at), tt.root, "listed")
			key.refused(401, "invalid-signature", "GET", "/api/v1/hubs/shop%2Forders", nil)
		})
	}
}

func (y *yard) policies(at string) string {
	y.t.Helper()
	list := read[struct{ Policies []admin.Policy }](y.t, y.want(200, "GET", at, nil))
	names := make([]string, len(list.Policies))
	for i, p := range list.Policies {
		names[i] = p.Name
	}
	return strings.Join(names, " ")
}

// Who shows no keys asks without them.
func TestPoliciesWithoutKeys(t *testing.T) {
	y := newYard(t)
	for _, at := range []string{"/api/v1/policies", "/api/v1/blob-account"} {
		for query, there := range map[string]bool{"": true, "?keys=true": true, "?keys=false": false} {
			answer := string(y.want(200, "GET", at+query, nil).body)
			testkit.Equal(t, strings.Contains(answer, `Key":`), there, "%s%s has keys: %s", at, query, answer)
		}
	}
}

// Whoever has keys already brings them along.
func TestPolicyWithGivenKeys(t *testing.T) {
	y := newYard(t)
	primary, secondary := strings.Repeat("primary+", 6), strings.Repeat("second/=", 6)
	var got admin.Policy
	y.want(201, "POST", "/api/v1/policies", admin.PolicyRequest{
		Name: "moved", Rights: []string{"Manage"}, PrimaryKey: primary, SecondaryKey: secondary,
	}).json(t, &got)
	testkit.Equal(t, got.PrimaryKey, primary, "its keys are %q and %q", got.PrimaryKey, got.SecondaryKey)
	testkit.Equal(t, got.SecondaryKey, secondary, "its keys are %q and %q", got.PrimaryKey, got.SecondaryKey)
	for _, key := range []string{primary, secondary} {
		y.as(basic("moved", key)).want(200, "GET", "/api/v1/policies", nil)
		y.as(auth.Sign("http://localhost/", "moved", key, time.Now().Add(time.Hour))).want(200, "GET", "/api/v1/policies", nil)
	}
}

// One key is made anew, and the other stays good meanwhile.
func TestRegenerate(t *testing.T) {
	y := newYard(t)
	y.policy("", "worker", auth.Listen)
	for _, which := range []string{"primary", "secondary"} {
		var before, after admin.Policy
		y.want(200, "GET", "/api/v1/policies/worker", nil).json(t, &before)
		y.want(200, "POST", "/api/v1/policies/worker/regenerate", `{"key":"`+which+`"}`).json(t, &after)
		old, kept := before.PrimaryKey, before.SecondaryKey
		wantKept := after.SecondaryKey
		if which == "secondary" {
			old, kept, wantKept = kept, old, after.PrimaryKey
		}
		testkit.Equal(t, kept, wantKept, "making the %s key anew changed the other", which)
		y.as(basic("worker", old)).want(401, "GET", "/api/v1/hubs", nil)
		y.as(basic("worker", after.PrimaryKey)).want(200, "GET", "/api/v1/hubs", nil)
		y.as(basic("worker", after.SecondaryKey)).want(200, "GET", "/api/v1/hubs", nil)
	}
}

// What cannot be is refused, with a way out.
func TestPolicyRefusals(t *testing.T) {
	root := "/api/v1/policies/" + auth.RootPolicy
	tests := []struct {
		what, method, path string
		body               any
		status             int
		kind               string
	}{
		{"a name that exists", "POST", "/api/v1/policies", `{"name":"worker","rights":["Send"]}`, 409, "policy-exists"},
		{"no name", "POST", "/api/v1/policies", `{"rights":["Send"]}`, 400, "invalid-policy"},
		{"no rights", "POST", "/api/v1/policies", `{"name":"a"}`, 400, "invalid-rights"},
		{"a right that is none", "POST", "/api/v1/policies", `{"name":"a","rights":["Fly"]}`, 400, "invalid-rights"},
		{"a field nobody knows", "POST", "/api/v1/policies", `{"name":"a","rights":["Send"],"key":"x"}`, 400, "bad-request"},
		{"a policy of a hub that is not there", "POST", "/api/v1/hubs/nowhere/policies", `{"name":"a","rights":["Send"]}`, 404, "not-found"},
		{"the policies of a hub that is not there", "GET", "/api/v1/hubs/nowhere/policies", nil, 404, "not-found"},
		{"a policy that is not there", "GET", "/api/v1/policies/nobody", nil, 404, "policy-not-found"},
		{"one of the namespace in a hub", "GET", "/api/v1/hubs/orders/policies/worker", nil, 404, "policy-not-found"},
		{"deleting a policy that is not there", "DELETE", "/api/v1/policies/nobody", nil, 404, "policy-not-found"},
		{"deleting the root policy", "DELETE", root, nil, 409, "root-policy"},
		{"a new key of a policy that is not there", "POST", "/api/v1/policies/nobody/regenerate", `{"key":"primary"}`, 404, "policy-not-found"},
		{"a key that is none", "POST", root + "/regenerate", `{"key":"third"}`, 400, "bad-request"},
		{"no key", "POST", root + "/regenerate", `{}`, 400, "bad-request"},
		{"a connection string without a listener", "GET", "/api/v1/connection-string", nil, 404, "no-endpoint"},
		{"a connection string of nobody", "GET", "/api/v1/connection-string?policy=nobody", nil, 404, "policy-not-found"},
		{"a connection string of no hub", "GET", "/api/v1/connection-string?hub=nowhere", nil, 404, "not-found"},
		{"a connection string with no key", "GET", "/api/v1/connection-string?key=third", nil, 400, "bad-request"},
		{"a connection string with half of TLS", "GET", "/api/v1/connection-string?tls=maybe", nil, 400, "bad-request"},
	}
	y := newYard(t)
	y.hub("orders", 1)
	y.policy("", "worker", auth.Send)
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) { y.in(t).refused(tt.status, tt.kind, tt.method, tt.path, tt.body) })
	}
}

// A policy comes with connection strings that can be used as they are.
func TestPoliciesHaveConnectionStrings(t *testing.T) {
	y := newYard(t, withEndpoints)
	y.hub("orders", 1)
	y.policy("orders", "sender", auth.Send)
	got := read[admin.Policy](t, y.want(200, "GET", "/api/v1/hubs/orders/policies/sender", nil))
	for name, tt := range map[string]struct{ text, key string }{
		"primary": {got.ConnectionStrings.Primary, got.PrimaryKey}, "secondary": {got.ConnectionStrings.Secondary, got.SecondaryKey},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := auth.ParseConnectionString(tt.text)
			testkit.Must(t, err)
			want := auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: "sender", Key: tt.key, Hub: "orders", Emulator: true}
			testkit.Diff(t, want, parsed)
		})
	}
}

// One connection string, for the host by which the client came: plain in development,
// TLS otherwise, unless it is asked for.
func TestConnectionString(t *testing.T) {
	y := newYard(t, withEndpoints)
	y.hub("Orders", 1)
	root, err := y.registry.Policy("", auth.RootPolicy)
	testkit.Must(t, err)
	ours := y.policy("Orders", "ours", auth.Send)
	earnest := newYard(t, withEndpoints, func(c *Config) { c.Broker, c.Access = y.broker, inEarnest{y.registry} })
	plain := newYard(t, func(c *Config) {
		c.Broker, c.Access = y.broker, inEarnest{y.registry}
		c.Endpoint = func(_ *http.Request, tls bool) string { return map[bool]string{false: "sb://only:1/"}[tls] }
	})
	for _, tt := range []struct {
		what  string
		yard  *yard
		query string
		want  auth.ConnectionString
	}{
		{"in development", y, "", auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: root.Name, Key: root.Primary, Emulator: true}},
		{"with the other key", y, "?key=secondary", auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: root.Name, Key: root.Secondary, Emulator: true}},
		{"with TLS", y, "?tls=true", auth.ConnectionString{Endpoint: "sb://localhost/", Policy: root.Name, Key: root.Primary}},
		{"for a hub", y, "?hub=ORDERS", auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: root.Name, Key: root.Primary, Hub: "Orders", Emulator: true}},
		{"of a hub's policy", y, "?hub=orders&policy=ours", auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: "ours", Key: ours.Primary, Hub: "Orders", Emulator: true}},
		{"in earnest", earnest, "", auth.ConnectionString{Endpoint: "sb://localhost/", Policy: root.Name, Key: root.Primary}},
		{"in earnest without TLS", earnest, "?tls=false", auth.ConnectionString{Endpoint: "sb://localhost:5672/", Policy: root.Name, Key: root.Primary, Emulator: true}},
		{"where there is no TLS", plain, "", auth.ConnectionString{Endpoint: "sb://only:1/", Policy: root.Name, Key: root.Primary, Emulator: true}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got := read[struct{ ConnectionString string }](t, tt.yard.in(t).want(200, "GET", "/api/v1/connection-string"+tt.query, nil))
			parsed, err := auth.ParseConnectionString(got.ConnectionString)
			testkit.Must(t, err)
			testkit.Diff(t, tt.want, parsed)
		})
	}
	plain.refused(404, "no-endpoint", "GET", "/api/v1/connection-string?tls=true", nil)
}

// The host of a connection string is the one that the client could reach.
func TestConnectionStringNamesTheHostOfTheClient(t *testing.T) {
	y := newYard(t, withEndpoints)
	got := read[struct{ ConnectionString string }](t, y.want(200, "GET", "/api/v1/connection-string", nil, "Host", "yard.example:8080"))
	if !strings.HasPrefix(got.ConnectionString, "Endpoint=sb://yard.example:5672/;") {
		t.Errorf("got %s", got.ConnectionString)
	}
}
