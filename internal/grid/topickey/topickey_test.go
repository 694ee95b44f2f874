package topickey

import (
	"encoding/base64"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G12: keys look like Event Grid's, and no two are the same.
func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		key := New()
		b, err := base64.StdEncoding.DecodeString(key)
		if err != nil || len(b) != 32 || seen[key] {
			t.Fatalf("%q: %d bytes, %v, seen %v", key, len(b), err, seen[key])
		}
		seen[key] = true
	}
}

// G12: both keys are good at any time.
func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		what  string
		given string
		keys  []string
		want  bool
	}{
		{"the first", "one", []string{"one", "two"}, true},
		{"the second", "two", []string{"one", "two"}, true},
		{"neither", "three", []string{"one", "two"}, false},
		{"another case", "One", []string{"one"}, false},
		{"only the beginning", "on", []string{"one"}, false},
		{"more than it", "one ", []string{"one"}, false},
		{"an empty one of a topic without keys", "", nil, false},
		{"an empty one of a topic with an empty key", "", []string{"", "two"}, false},
		{"one beside an empty key", "two", []string{"", "two"}, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, Equal(tt.given, tt.keys...), tt.want)
		})
	}
}

// What signs for a key, however it is written.
func TestSecret(t *testing.T) {
	for _, tt := range []struct {
		what, key string
		want      []byte
	}{
		{"base64", "MDEyMw==", []byte("0123")},
		{"without padding", "MDEyMw", []byte("0123")},
		{"the alphabet of URLs", "-_-_", []byte{0xfb, 0xff, 0xbf}},
		{"the usual one", "+/+/", []byte{0xfb, 0xff, 0xbf}},
		{"no base64: a character that it does not have", "correct horse", []byte("correct horse")},
		{"no base64: a length that it does not have", "abcde", []byte("abcde")},
		{"nothing but padding", "==", []byte("==")},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Slices(t, secret(tt.key), tt.want)
		})
	}
}

// G12: what a token is good for: the route's own topic and operation, and what is above them.
func TestCovers(t *testing.T) {
	publish := Target{Topic: "Orders", Hosts: []string{"grid.test"}}
	pull := Target{Topic: "Orders", Subscription: "Jobs", Hosts: []string{"grid.test"}}
	byHost := Target{Topic: "orders", Hosts: []string{"127.0.0.1:8080", "orders.grid.test:8443"}}
	behind := Target{Topic: "orders", Hosts: []string{"grid.test"}, Prefix: "/our/yard"}
	number := Target{Topic: "127", Hosts: []string{"127.0.0.1"}}
	for _, tt := range []struct {
		what, resource string
		at             Target
		want           bool
	}{
		{"the topic, to publish", "https://grid.test/topics/orders", publish, true},
		{"the topic, to receive", "https://grid.test/topics/orders", pull, true},
		{"the endpoint", "https://grid.test/topics/orders/api/events", publish, true},
		{"the shorter one", "https://grid.test/topics/orders/events", publish, true},
		{"a namespace's", "https://grid.test/topics/orders:publish", publish, true},
		{"half of the endpoint's path", "https://grid.test/topics/orders/api", publish, true},
		{"the subscription", "https://grid.test/topics/orders/eventsubscriptions/jobs", pull, true},
		{"all subscriptions", "https://grid.test/topics/orders/eventSubscriptions", pull, true},
		{"all topics", "https://grid.test/topics", pull, true},
		{"the host", "https://grid.test", publish, true},
		{"the host with a slash, to receive", "https://grid.test/", pull, true},
		{"a trailing slash", "https://grid.test/topics/orders/", publish, true},
		{"another scheme", "http://grid.test/topics/orders", publish, true},
		{"no scheme", "grid.test/topics/orders", publish, true},
		{"another case", "HTTPS://Grid.Test/Topics/ORDERS/API/events", publish, true},
		{"a default port", "https://grid.test:443/topics/orders", publish, true},
		{"the default port of another scheme", "https://grid.test:80/topics/orders", publish, true},
		{"an escape that need not be", "https://grid.test/topics/o%72ders", publish, true},
		{"a host that names the topic", "https://orders.grid.test:8443/api/events", byHost, true},
		{"a host that names the topic, all of it", "https://orders.grid.test:8443/", byHost, true},
		{"behind another server", "https://grid.test/our/yard/topics/orders/api/events", behind, true},
		{"all that is there", "https://grid.test/our", behind, true},
		{"asked without the other server", "https://grid.test/topics/orders", behind, true},

		{"publishing does not receive", "https://grid.test/topics/orders/api/events", pull, false},
		{"nor does a namespace's", "https://grid.test/topics/orders:publish", pull, false},
		{"receiving does not publish", "https://grid.test/topics/orders/eventsubscriptions/jobs", publish, false},
		{"all subscriptions do not publish", "https://grid.test/topics/orders/eventsubscriptions", publish, false},
		{"another subscription", "https://grid.test/topics/orders/eventsubscriptions/job", pull, false},
		{"one verb of it", "https://grid.test/topics/orders/eventsubscriptions/jobs:receive", pull, false},
		{"another verb", "https://grid.test/topics/orders:receive", publish, false},
		{"another topic", "https://grid.test/topics/invoices", publish, false},
		{"half a name", "https://grid.test/topics/order", publish, false},
		{"a name that goes on", "https://grid.test/topics/orders2", publish, false},
		{"a path beneath", "https://grid.test/topics/orders/api/events/x", publish, false},
		{"another path", "https://grid.test/orders/api/events", publish, false},
		{"another host", "https://other.test/topics/orders", publish, false},
		{"a host that goes on", "https://grid.test.evil.test/topics/orders", publish, false},
		{"half a host", "https://grid.tes", publish, false},
		{"another port", "https://grid.test:8443/topics/orders", publish, false},
		{"a host that names another topic", "https://others.grid.test:8443/api/events", byHost, false},
		{"an address that names none", "https://127.0.0.1/api/events", number, false},
		{"another server's", "https://grid.test/our/shop/topics/orders", behind, false},
		{"a slash that is escaped", "https://grid.test/topics%2Forders", publish, false},
		{"steps upwards", "https://grid.test/topics/x/../orders", publish, false},
		{"steps upwards, escaped", "https://grid.test/topics/%2e%2e/topics/orders", publish, false},
		{"a user's name", "https://evil.test@grid.test", publish, false},
		{"no host", "https:///topics/orders", publish, false},
		{"nothing", "", publish, false},
		{"no URL", "::", publish, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, (Token{Resource: tt.resource}).Covers(tt.at), tt.want, "%s for %+v", tt.resource, tt.at)
		})
	}
}
