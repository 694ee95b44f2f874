package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The audiences and resources that the SDKs of Event Hubs write, and stranger ones.
func TestPath(t *testing.T) {
	tests := []struct {
		what, uri, want string
	}{
		{"Go", "amqps://ns.example.net/orders/ConsumerGroups/$Default/Partitions/0", "orders/consumergroups/$default/partitions/0"},
		{"Go with the emulator's flag", "amqp://localhost:5672/orders", "orders"},
		{"Go's management", "amqps://ns.example.net/orders/$management", "orders/$management"},
		{"Python", "sb://ns.example.net/orders/consumergroups/g", "orders/consumergroups/g"},
		{"REST", "https://ns.example.net/orders", "orders"},
		{"plain HTTP", "http://127.0.0.1:8080/orders", "orders"},
		{"WebSocket", "wss://ns.example.net/orders", "orders"},
		{"a scheme in upper case", "SB://ns/orders", "orders"},
		{"no scheme", "ns.example.net/orders", "orders"},
		{"no scheme, but a port", "localhost:5672/orders/partitions/1", "orders/partitions/1"},
		{"a bare host is the namespace", "ns.example.net", ""},
		{"with a port as well", "localhost:5672", ""},
		{"with a scheme as well", "sb://localhost", ""},
		{"with a slash as well", "sb://localhost/", ""},
		{"an address of version 6", "amqp://[::1]:5672/orders", "orders"},
		{"a user is dropped", "amqps://policy:secret@ns.example.net/orders", "orders"},
		{"the query is dropped", "https://ns/orders?api-version=2014-01", "orders"},
		{"also behind the host", "https://ns?x=/orders", ""},
		{"the fragment is dropped", "https://ns/orders#top", "orders"},
		{"slashes at the ends are dropped", "sb://ns//orders//", "orders"},
		{"those inside stay, as names of hubs have them", "sb://ns/a//b/c", "a//b/c"},
		{"so do dots", "sb://ns/a.b/../c", "a.b/../c"},
		{"escapes in upper hex", "amqps://ns/orders/%24management%2F%C3%A4", "orders/$management/ä"},
		{"escapes in lower hex", "amqps://ns/orders/%24management%2f%c3%a4", "orders/$management/ä"},
		{"a plus is a plus", "sb://ns/a+b", "a+b"},
		{"escapes are undone once", "sb://ns/a%2525", "a%25"},
		{"upper case is folded", "sb://NS/ORDERS", "orders"},
		{"but not in the name of a publisher", "sb://ns/ORDERS/Publishers/Dev1", "orders/publishers/Dev1"},
		{"nor in that of a group", "sb://ns/ORDERS/ConsumerGroups/Bill/X/Partitions/0", "orders/consumergroups/Bill/X/partitions/0"},
		{"but nothing beyond ASCII", "sb://ns/\u212Aelvin", "\u212Aelvin"},
		{"another scheme inside the path is part of it", "ns/a", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, testkit.Value(Path(tt.uri))(t), tt.want, "%q", tt.uri)
		})
	}
}

func TestPathRefuses(t *testing.T) {
	for what, uri := range map[string]string{
		"nothing":                   "",
		"a lone slash":              "/",
		"a path without a host":     "/orders",
		"a scheme without a host":   "sb:///orders",
		"a scheme and nothing":      "sb://",
		"an unknown scheme":         "ftp://ns/orders",
		"an empty scheme":           "://ns/orders",
		"a broken escape":           "sb://ns/a%zz",
		"half an escape":            "sb://ns/a%2",
		"a query in a host's place": "?orders",
	} {
		t.Run(what, func(t *testing.T) {
			if got, err := Path(uri); !errors.Is(err, ErrMalformed) {
				t.Errorf("%q: got %q, %v", uri, got, err)
			}
		})
	}
}

func TestPathOf(t *testing.T) {
	tests := []struct {
		parts []string
		want  string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"Orders"}, "orders"},
		{[]string{"Orders", "Partitions", "0"}, "orders/partitions/0"},
		{[]string{"/Orders/Partitions/0/"}, "orders/partitions/0"},
		{[]string{"a/B", "$management"}, "a/b/$management"},
		{[]string{"a%2Fb"}, "a%2fb"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q", tt.parts), func(t *testing.T) {
			testkit.Equal(t, PathOf(tt.parts...), tt.want)
		})
	}
}

// Where the name of a hub ends in a path.
func TestHubOf(t *testing.T) {
	tests := []struct{ path, want string }{
		{"", ""},
		{"orders", "orders"},
		{"a/b", "a/b"},
		{"a//b", "a//b"},
		{"orders/partitions/0", "orders"},
		{"a/b/consumergroups/g/partitions/0", "a/b"},
		{"orders/publishers/me", "orders"},
		{"orders/messages", "orders"},
		{"orders/$management", "orders"},
		{"orders//partitions/0", "orders"},
		{"orders/mypartitions/0", "orders/mypartitions/0"},
		{"orders/consumergroups/a/consumergroups/b", "orders"},
		{"messages", "messages"},
		{"partitions/0", "partitions/0"},
		{"messages/messages", "messages"},
		{"$management", "$management"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			testkit.Equal(t, HubOf(tt.path), tt.want, "%q lies in", tt.path)
			testkit.Equal(t, EntityOf(tt.path).Hub, tt.want, "%q is judged in", tt.path)
		})
	}
}

// What a hub's name has, beyond its first segment, that no name may have.
func TestReservedSegment(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "", "a/b": "", "Messages": "", "partitions/0": "", "a/my-partitions": "",
		"a/Partitions/0": "partitions", "a/b/CONSUMERGROUPS": "consumergroups", "a//publishers": "publishers",
		"a/messages": "messages", "a/$x/b": "$x",
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, ReservedSegment(name), want, "%q", name)
		})
	}
}

func TestAt(t *testing.T) {
	tests := []struct {
		hub   string
		parts []string
		want  Entity
	}{
		{"Orders", nil, Entity{Hub: "orders"}},
		{"a/B", []string{"Partitions", "0"}, Entity{Hub: "a/b", Part: "partitions", Name: "0"}},
		{"h", []string{"ConsumerGroups", "G", "Partitions", "0"}, Entity{Hub: "h", Part: "consumergroups", Name: "G", Partition: "0"}},
		{"h", []string{"ConsumerGroups", "$Default", "Partitions", ""}, Entity{Hub: "h", Part: "consumergroups", Name: "$default"}},
		{"", nil, Entity{}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q %q", tt.hub, tt.parts), func(t *testing.T) {
			testkit.Equal(t, At(tt.hub, tt.parts...), tt.want)
		})
	}
}

// A path is made of any text without a panic, has the form that covers expects, and is
// its own path.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "sb://ns/Orders/", "ns", "a://b", "ns/%2f%2F", "ns/%", "sb://ns/a?b#c", "ns//\xff", "ns/A//Publishers//B", "ns/a/ConsumerGroups//Partitions/0", "ns/a/$X/Y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		path, err := Path(uri)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || path != "" {
				t.Errorf("got %q, %v", path, err)
			}
			return
		}
		if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || PathOf(path) != path {
			t.Errorf("%q gives %q", uri, path)
		}
		e := EntityOf(path)
		if !e.covers(e) || path != "" && e.covers(Entity{}) || !strings.HasPrefix(path, HubOf(path)) || path != "" && HubOf(path) == "" {
			t.Errorf("%q is not covered as it should be", path)
		}
	})
}

// R1: names that a path or a host would turn into others.
func TestAmbiguousPart(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "", "a/b.c-d_e/f": "", "v1.2": "", ".a": "", "a..b": "..", "a/../b": "..", "..": "..", "a//b": "//", "a./b": "./", "a.": ".", "a/b.": ".",
	} {
		testkit.Equal(t, AmbiguousPart(name), want, "%q", name)
	}
}
