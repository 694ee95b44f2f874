package eventgrid

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/testkit"
)

const manager = "/subscriptions/0-1/resourceGroups/yard"

// G12: every path of the contract is found, in any case, escaped or not.
func TestPathsAreFound(t *testing.T) {
	d := newYard(t).handler
	for _, test := range []struct{ method, path, name, topic, subscription, hub string }{
		{"POST", "/topics/orders/api/events?api-version=2018-01-01", "Publish", "orders", "", ""},
		{"POST", "/topics/orders/api/events/", "Publish", "orders", "", ""},
		{"POST", "/Topics/Orders/API/Events", "Publish", "Orders", "", ""},
		{"POST", "/topics/orders/events?api-version=2019-01-01-preview", "Publish", "orders", "", ""},
		{"POST", "/topics/or%64ers/events", "Publish", "orders", "", ""},
		{"OPTIONS", "/topics/orders/api/events", "PublishOptions", "orders", "", ""},
		{"POST", "/api/events?api-version=2018-01-01", "Publish", "bare", "", ""},
		{"POST", "/?api-version=2018-01-01", "Publish", "bare", "", ""},
		{"POST", "/topics/clouds:publish?api-version=2024-06-01", "NamespacePublish", "clouds", "", ""},
		{"POST", "/topics/clouds%3Apublish", "NamespacePublish", "clouds", "", ""},
		{"POST", "/topics/clouds:PUBLISH", "NamespacePublish", "clouds", "", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:receive", "Receive", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventSubscriptions/jobs%3areceive", "Receive", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:acknowledge", "Acknowledge", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:release", "Release", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:reject", "Reject", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:renewLock", "RenewLock", "clouds", "jobs", ""},
		{"POST", "/topics/clouds/eventsubscriptions/jobs:renewlock", "RenewLock", "clouds", "jobs", ""},
		{"GET", ValidationPath("orders", "id1", "a b&c"), "Validate", "orders", "", ""},
		{"POST", ValidationPath("", "id1", "token"), "Validate", "-", "", ""},

		{"GET", "/topics", "ListTopics", "", "", ""},
		{"GET", "/topics/", "ListTopics", "", "", ""},
		{"PUT", "/topics/orders", "PutTopic", "orders", "", ""},
		{"GET", "/topics/orders", "GetTopic", "orders", "", ""},
		{"HEAD", "/topics/orders", "GetTopic", "orders", "", ""},
		{"DELETE", "/topics/orders", "DeleteTopic", "orders", "", ""},
		{"POST", "/topics/orders/listKeys", "ListKeys", "orders", "", ""},
		{"GET", "/topics/orders/eventSubscriptions", "ListSubscriptions", "orders", "", ""},
		{"PUT", "/topics/orders/eventSubscriptions/mailer", "PutSubscription", "orders", "mailer", ""},
		{"GET", "/topics/orders/eventsubscriptions/mailer", "GetSubscription", "orders", "mailer", ""},
		{"DELETE", "/topics/orders/eventSubscriptions/mailer", "DeleteSubscription", "orders", "mailer", ""},

		{"GET", "/subscriptions/0-1/providers/Microsoft.EventGrid/topics", "ListTopics", "", "", ""},
		{"GET", "/subscriptions/0-1/providers/Microsoft.EventGrid/eventSubscriptions", "ListSubscriptions", "", "", ""},
		{"GET", manager + "/providers/Microsoft.EventGrid/eventSubscriptions", "ListSubscriptions", "", "", ""},
		{"GET", manager + "/providers/Microsoft.EventGrid/topics", "ListTopics", "", "", ""},
		{"GET", manager + "/providers/Microsoft.EventGrid/namespaces/yard", "GetNamespace", "", "", ""},
		{"GET", manager + "/providers/Microsoft.EventGrid/locations/westeurope/eventSubscriptions", "ListSubscriptions", "", "", ""},
		{"GET", "/subscriptions/0-1/providers/Microsoft.EventGrid/topicTypes/Microsoft.EventGrid.Topics/eventSubscriptions", "ListSubscriptions", "", "", ""},
		{"GET", "/providers/Microsoft.EventGrid/topicTypes", "ListTopicTypes", "", "", ""},
		{"GET", "/providers/Microsoft.EventGrid/topicTypes/Microsoft.EventGrid.Topics/eventTypes", "ListEventTypes", "", "", ""},
		{"PUT", manager + "/providers/microsoft.eventgrid/topics/orders", "PutTopic", "orders", "", ""},
		{"PATCH", manager + "/providers/Microsoft.EventGrid/topics/orders", "UpdateTopic", "orders", "", ""},
		{"POST", manager + "/providers/Microsoft.EventGrid/topics/orders/listKeys", "ListKeys", "orders", "", ""},
		{"POST", manager + "/providers/Microsoft.EventGrid/topics/orders/regenerateKey", "RegenerateKey", "orders", "", ""},
		{"PUT", manager + "/providers/Microsoft.EventGrid/topics/orders/eventSubscriptions/mailer", "PutSubscription", "orders", "mailer", ""},
		{"PATCH", manager + "/providers/Microsoft.EventGrid/topics/orders/eventSubscriptions/mailer", "UpdateSubscription", "orders", "mailer", ""},
		{"POST", manager + "/providers/Microsoft.EventGrid/topics/orders/eventSubscriptions/mailer/getFullUrl", "GetFullURL", "orders", "mailer", ""},
		{"POST", manager + "/providers/Microsoft.EventGrid/topics/orders/eventSubscriptions/mailer/getDeliveryAttributes", "GetDeliveryAttributes", "orders", "mailer", ""},
		{"GET", manager + "/providers/Microsoft.EventGrid/topics/orders/providers/Microsoft.EventGrid/eventSubscriptions/mailer", "GetSubscription", "orders", "mailer", ""},
		{"PUT", manager + "/providers/Microsoft.EventHub/namespaces/yard/eventhubs/a%2Fb/providers/Microsoft.EventGrid/eventSubscriptions/mailer", "PutSubscription", "", "mailer", "a/b"},
		{"PUT", manager + "/providers/Microsoft.EventGrid/namespaces/yard/topics/clouds/eventSubscriptions/jobs", "PutSubscription", "clouds", "jobs", ""},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "https://bare.localhost"+test.path, nil)
			c := d.newCall(&frame.Call{ResponseWriter: httptest.NewRecorder(), R: r})
			testkit.Must(t, c.Find())
			if got := [3]string{c.names.topic, c.names.subscription, c.names.hub}; c.Route.Name != test.name || got != [3]string{test.topic, test.subscription, test.hub} {
				t.Errorf("found %s %+v", c.Route.Name, c.names)
			}
			if !Serves(r) {
				t.Error("the request does not reach the listener")
			}
		})
	}
}

// What is no path of the listener is told as such, and a verb that is none is not part of a name.
func TestPathsThatAreNone(t *testing.T) {
	y := newYard(t)
	for _, test := range []struct {
		what, method, path string
		status             int
		code, allow        string
	}{
		{"a verb that nobody knows", "POST", "/topics/orders:erase", 404, "ResourceNotFound", ""},
		{"a verb of something else", "POST", "/topics/orders:receive", 404, "ResourceNotFound", ""},
		{"a verb with nothing before it", "POST", "/topics/:publish", 404, "ResourceNotFound", ""},
		{"a verb of pulling that nobody knows", "POST", "/topics/clouds/eventsubscriptions/jobs:peek", 404, "ResourceNotFound", ""},
		{"a topic without a name", "POST", "/topics//api/events", 404, "ResourceNotFound", ""},
		{"a step upwards", "POST", "/topics/../events", 401, "Unauthorized", ""},
		{"a slash that is escaped", "POST", "/topics%2Forders/events", 404, "ResourceNotFound", ""},
		{"no topic in path or host", "POST", "/api/events", 404, "ResourceNotFound", ""},
		{"HEAD where events are published", "HEAD", "/topics/orders/api/events", 404, "", ""},
		{"GET where events are published", "GET", "/topics/orders/api/events", 405, "MethodNotAllowed", "POST, OPTIONS"},
		{"a method of one's own", "BREW", "/topics/orders/api/events", 405, "MethodNotAllowed", "POST, OPTIONS"},
		{"GET of a namespace's publish", "GET", "/topics/clouds:publish", 405, "MethodNotAllowed", "POST"},
		{"HEAD of a validation link, which changes nothing", "HEAD", "/topics/orders/validate?id=a&token=b", 405, "", "POST, GET"},
		{"POST to a topic", "POST", "/topics/orders", 405, "MethodNotAllowed", "PUT, GET, DELETE"},
		{"another provider", "GET", manager + "/providers/Microsoft.EventGrid/partnerTopics/orders", 404, "ResourceNotFound", ""},
		{"bytes that are no text", "GET", "/topics/%ff", 400, "InvalidUri", ""},
		{"a path without end", "GET", "/topics/" + strings.Repeat("x", 3000), 400, "InvalidUri", ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			got := y.in(t).ask(test.method, test.path, "", withKey)
			if test.code == "" { // HEAD has no body
				got.want(test.status)
			} else {
				got.refused(test.status, test.code)
			}
			testkit.Equal(t, got.Header.Get("Allow"), test.allow, "Allow is")
		})
	}
}

func TestWhatTheHandlerServes(t *testing.T) {
	for _, test := range []struct {
		what, method, url string
		want              bool
	}{
		{"publishing", "POST", "http://localhost/topics/orders/api/events", true},
		{"the list of topics", "GET", "http://localhost/topics", true},
		{"in any case", "GET", "http://localhost/TOPICS/x", true},
		{"anything beneath topics", "GET", "http://localhost/topics/what/ever", true},
		{"a hub whose name begins alike", "POST", "http://localhost/topicsOfMine/messages", false},
		{"the path of a bare host", "POST", "http://orders.localhost/api/events", true},
		{"which any host has", "POST", "http://127.0.0.1/api/events", true},
		{"the HTTP listener's own", "GET", "http://orders.localhost/api/v1/hubs", false},
		{"a bare host of a topic", "POST", "http://orders.localhost:8080/?api-version=2018-01-01", true},
		{"a bare host without a version", "POST", "http://orders.localhost:8080/", false},
		{"a bare host that is looked at", "GET", "http://orders.localhost:8080/?api-version=2018-01-01", false},
		{"a bare host that can be no topic's", "POST", "http://localhost/?api-version=2018-01-01", false},
		{"a bare address", "POST", "http://127.0.0.1:8080/?api-version=2018-01-01", false},
		{"a bare address of version 6", "POST", "http://[::1]:8080/?api-version=2018-01-01", false},
		{"the resource manager's", "PUT", "http://localhost" + manager + "/providers/Microsoft.EventGrid/topics/orders", true},
		{"the resource manager's for others", "PUT", "http://localhost" + manager + "/providers/Microsoft.EventHub/namespaces/x", false},
		{"a hub named subscriptions", "POST", "http://localhost/subscriptions/messages", false},
		{"health", "GET", "http://localhost/healthz", false},
		{"blobs", "GET", "http://localhost/blob/eventyard", false},
	} {
		t.Run(test.what, func(t *testing.T) {
			testkit.Equal(t, Serves(httptest.NewRequest(test.method, test.url, nil)), test.want)
		})
	}
}

func TestValidationPathCarriesAnyToken(t *testing.T) {
	path := ValidationPath("orders", "a+b", "x&y=z/?#% ")
	u, err := url.Parse("http://localhost" + path)
	testkit.Must(t, err)
	if q := u.Query(); u.Path != "/topics/orders/validate" || q.Get("id") != "a+b" || q.Get("token") != "x&y=z/?#% " {
		t.Errorf("%s is read as %s %v", path, u.Path, q)
	}
}

// Only two operations are open to everybody.
func TestOpenRoutes(t *testing.T) {
	open := map[string]bool{}
	for _, rt := range newYard(t).handler.routes {
		if rt.Need.Reach == frame.Nobody {
			open[rt.Name] = true
		}
		if rt.Name == "" || rt.serve == nil {
			t.Errorf("route %+v is not whole", rt)
		}
	}
	if len(open) != 2 || !open["Validate"] || !open["PublishOptions"] {
		t.Errorf("open to everybody are %v", open)
	}
}

// The key of a yard on loopback is known to all, so that pages of others are kept out.
func TestWebPagesAreKeptOut(t *testing.T) {
	y := newYard(t)
	const path = "/topics/orders/api/events"
	page := func(r *http.Request) {
		withKey(r)
		r.Header.Set("Origin", "https://evil.example")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
	}
	y.ask("POST", path, "[]", page).refused(403, "CrossOrigin")
	old := func(r *http.Request) { withKey(r); r.Header.Set("Origin", "https://evil.example") }
	y.ask("POST", path, "[]", old).refused(403, "CrossOrigin")
	opaque := func(r *http.Request) { withKey(r); r.Header.Set("Origin", "null") }
	y.ask("POST", path, "[]", opaque).refused(403, "CrossOrigin")
	rebound := func(r *http.Request) { withKey(r); r.Host = "evil.example" }
	y.ask("POST", path, "[]", rebound).refused(403, "ForeignHost")
	y.ask("POST", path, "[]", withKey, func(r *http.Request) { r.Host = "orders.localhost" }).want(200)
}

// G12: a grid that delivers CloudEvents names itself in Origin, too (reference §9). It is no page,
// and may publish here what it delivers; but what a page can send is kept out, whatever it claims.
func TestAGridMayDeliverToATopic(t *testing.T) {
	y := newYard(t)
	const path, one = "/topics/clouds/api/events", `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	sender := func(r *http.Request) {
		withKey(r)
		r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
		r.Header.Set("Origin", "eventgrid.azure.net")
		r.Header.Set("WebHook-Request-Origin", "eventgrid.azure.net")
	}
	y.ask("POST", path, one, sender).want(200)
	y.ask("POST", path, one, sender, header("Sec-Fetch-Site", "cross-site")).refused(403, "CrossOrigin")
	if stored := y.topics.stored("clouds"); len(stored) != 1 {
		t.Errorf("stored %q", stored)
	}
}
