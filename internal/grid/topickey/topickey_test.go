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

// G12: what a token is good for.
func TestCovers(t *testing.T) {
	const topic = "https://grid.test/orders/api/events"
	for _, tt := range []struct {
		what, resource, url string
		want                bool
	}{
		{"itself", topic, topic, true},
		{"with a query", topic, topic + "?api-version=2018-01-01", true},
		{"a trailing slash of the URL", topic, topic + "/", true},
		{"a trailing slash of the resource", topic + "/", topic, true},
		{"another scheme", topic, "http://grid.test/orders/api/events", true},
		{"another case", topic, "HTTPS://Grid.Test/Orders/API/events", true},
		{"the default port", topic, "https://grid.test:443/orders/api/events", true},
		{"the default port of http", topic, "http://grid.test:80/orders/api/events", true},
		{"the default port of http, asked behind another scheme", "http://grid.test:80/orders", "https://grid.test:80/orders/api/events", true},
		{"the default port of https, asked behind another scheme", "https://grid.test:443/orders", "http://grid.test:443/orders/api/events", true},
		{"a resource without its scheme", "grid.test/orders/api/events", topic, true},
		{"an escape that need not be", "https://grid.test/o%72ders", topic, true},
		{"the host", "https://grid.test", topic, true},
		{"the host with a slash", "https://grid.test/", topic, true},
		{"the path above", "https://grid.test/orders", topic, true},
		{"a topic, for its verbs", "https://grid.test/topics/orders", "https://grid.test/topics/orders:publish", true},
		{"a topic, for its subscriptions", "https://grid.test/topics/orders", "https://grid.test/topics/orders/eventsubscriptions/s:receive", true},
		{"a subscription, for its verbs", "https://grid.test/topics/orders/eventsubscriptions/s", "https://grid.test/topics/orders/eventsubscriptions/s:receive", true},
		{"one verb, for itself", "https://grid.test/topics/orders:publish", "https://grid.test/topics/orders:publish", true},

		{"one verb, for another", "https://grid.test/topics/orders:publish", "https://grid.test/topics/orders:receive", false},
		{"half a segment", "https://grid.test/ord", topic, false},
		{"a topic whose name goes on", "https://grid.test/topics/orders", "https://grid.test/topics/orders2:publish", false},
		{"the path beneath", topic + "/x", topic, false},
		{"another topic", "https://grid.test/invoices/api/events", topic, false},
		{"another host", "https://other.test/orders/api/events", topic, false},
		{"a host that goes on", "https://grid.test.evil.test/orders/api/events", topic, false},
		{"half a host", "https://grid.tes", topic, false},
		{"another port", topic, "https://grid.test:8443/orders/api/events", false},
		{"another port that ends alike", topic, "https://grid.test:8080/orders/api/events", false},
		{"a slash that is escaped", "https://grid.test/orders/api", "https://grid.test/orders%2Fapi/events", false},
		{"steps upwards", "https://grid.test/orders", "https://grid.test/orders/../invoices", false},
		{"steps upwards, escaped", "https://grid.test/orders", "https://grid.test/orders/%2e%2e/invoices", false},
		{"a user's name", "https://grid.test@evil.test", "https://evil.test", false},
		{"no host", "https:///orders", topic, false},
		{"nothing", "", topic, false},
		{"no URL", topic, "::", false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, (Token{Resource: tt.resource}).Covers(tt.url), tt.want,
				"%s for %s", tt.resource, tt.url)
		})
	}
}
