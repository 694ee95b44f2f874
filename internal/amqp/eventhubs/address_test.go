package eventhubs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

func hubAt(hub, group, partition string) address {
	return address{node: nodeHub, hub: hub, group: group, partition: partition}
}

// H8: every form of address that a client is known to write.
func TestAddressesInEveryForm(t *testing.T) {
	tests := []struct {
		what, text string
		want       address
	}{
		{"a hub", "orders", hubAt("orders", "", "")},
		{"a hub with a slash before it, as .NET writes it", "/orders", hubAt("orders", "", "")},
		{"a hub with slashes behind it", "orders//", hubAt("orders", "", "")},
		{"a partition", "orders/Partitions/3", hubAt("orders", "", "3")},
		{"a partition in lower case", "/orders/partitions/3/", hubAt("orders", "", "3")},
		{"a partition in upper case", "orders/PARTITIONS/3", hubAt("orders", "", "3")},
		{"a whole URL, as Python writes it", "amqps://host.example/orders", hubAt("orders", "", "")},
		{"a whole URL with a port", "amqp://localhost:5672/orders/Partitions/0", hubAt("orders", "", "0")},
		{"a whole URL with a user", "amqp://a:b@localhost/orders", hubAt("orders", "", "")},
		{"a group", "orders/ConsumerGroups/billing/Partitions/0", hubAt("orders", "billing", "0")},
		{"a group in any case", "Orders/consumergroups/Billing/PARTITIONS/0", hubAt("Orders", "Billing", "0")},
		{"a whole URL of a group", "amqps://host/orders/ConsumerGroups/$default/Partitions/12", hubAt("orders", "$default", "12")},
		{"a group that was escaped", "/orders/ConsumerGroups/%24Default/Partitions/1", hubAt("orders", "$Default", "1")},
		{"slashes that were escaped", "a%2Fb/ConsumerGroups/c%2fd/Partitions/1", hubAt("a/b", "c/d", "1")},
		{"names with slashes", "a/b.c/ConsumerGroups/d/e_f/Partitions/1", hubAt("a/b.c", "d/e_f", "1")},
		{"a hub with slashes alone", "a/b/c", hubAt("a/b/c", "", "")},
		{"the words are found from the right", "a/ConsumerGroups/b/ConsumerGroups/c/Partitions/1", hubAt("a/ConsumerGroups/b", "c", "1")},
		{"a word in the hub's name", "a/Partitions/b/Partitions/1", hubAt("a/Partitions/b", "", "1")},
		{"a word without a hub is a name", "Partitions/0", hubAt("Partitions/0", "", "")},
		{"a word without a name is a part of the hub", "orders/Partitions", hubAt("orders/Partitions", "", "")},
		{"a word inside another is none", "orders/myPartitions/0", hubAt("orders/myPartitions/0", "", "")},
		{"a partition that is no number is one to be refused", "orders/Partitions/x", hubAt("orders", "", "x")},
		{"a group without partition, as in Python's audiences", "orders/consumergroups/g", hubAt("orders", "g", "")},
		{"a publisher", "orders/Publishers/device-7", address{node: nodeHub, hub: "orders", publisher: "device-7"}},
		{"a bad escape stands for itself", "orders%zz", hubAt("orders%zz", "", "")},
		{"the claims", "$cbs", address{node: nodeClaims}},
		{"the claims as a URL", "amqps://host/$CBS/", address{node: nodeClaims}},
		{"the claims with a slash", "/$cbs", address{node: nodeClaims}},
		{"the management", "$management", address{node: nodeManagement}},
		{"the management as a URL", "amqp://host:5672/%24management", address{node: nodeManagement}},
		{"a hub's management", "/orders/$Management", address{node: nodeManagement, hub: "orders"}},
		{"a name that ends like it", "my$management", hubAt("my$management", "", "")},
		{"nothing", "", address{}},
		{"a slash", "/", address{}},
		{"a host alone", "amqps://host", address{}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Diff(t, tt.want, parseAddress(tt.text), cmp.AllowUnexported(address{}))
		})
	}
}

// An audience without a scheme begins with a host; an address does not.
func TestAudiences(t *testing.T) {
	tests := []struct {
		text string
		want address
	}{
		{"sb://host/orders/consumergroups/$default", hubAt("orders", "$default", "")},
		{"amqps://host/orders/$management", address{node: nodeManagement, hub: "orders"}},
		{"sb://host/", address{}},
		{"sb://host", address{}},
		{"host", address{}},
		{"host/orders", hubAt("orders", "", "")},
		{"host/Orders/Partitions/0?timeout=60", hubAt("Orders", "", "0")},
		{"sb://host/a%2Fb", hubAt("a/b", "", "")},
		{"sb://host/a%252Fb", hubAt("a%2Fb", "", "")},
		{"ftp://host/orders", address{}},
		{"sb://host/a%zz", address{}},
		{"", address{}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%q", tt.text), func(t *testing.T) {
			testkit.Diff(t, tt.want, parseAudience(tt.text), cmp.AllowUnexported(address{}))
		})
	}
}

// What rights are judged by is the same however the address was written.
func TestScopes(t *testing.T) {
	// The hub is the one that the link works on, whatever the path looks like.
	for text, want := range map[string]auth.Entity{
		"/Orders/ConsumerGroups/%24Default/Partitions/1": auth.At("orders", "consumergroups", "$default", "partitions", "1"),
		"Orders/ConsumerGroups/g/x/Partitions/1":         auth.At("orders", "consumergroups", "g/x", "partitions", "1"),
		"amqps://host/orders/PARTITIONS/0/":              auth.At("orders", "partitions", "0"),
		"orders//Partitions//0":                          auth.At("orders", "partitions", "0"),
		"orders/publishers/P":                            auth.At("orders", "publishers", "P"),
		"orders/$management":                             auth.At("orders", "$management"),
		"orders/$yard":                                   auth.At("orders", "$yard"),
		"orders":                                         auth.At("orders"),
		"a/b/Partitions/0":                               auth.At("a/b", "partitions", "0"),
		"a/Partitions/0/Partitions/1":                    auth.At("a/partitions/0", "partitions", "1"),
		"a/ConsumerGroups/b/ConsumerGroups/c":            auth.At("a/consumergroups/b", "consumergroups", "c"),
		"amqps://host/a%2FPartitions/x/$management/":     auth.At("a/partitions/x", "$management"),
	} {
		testkit.Equal(t, parseAddress(text).scope(), want, "%q is judged as", text)
	}
}

// A stranger may write anything: what comes out names only what went in, and reading it
// again in its usual form gives the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"orders", "/a/ConsumerGroups/b/Partitions/0", "amqps://h/%24cbs", "a/Partitions/", "//", "%2f%2F", "a/$management"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := parseAddress(text)
		if a.node == nodeHub && a.hub == "" {
			t.Fatalf("%q is a hub without a name", text)
		}
		testkit.MustEqual(t, strings.HasPrefix(a.hub, "/"), false, "%q names the hub %q", text, a.hub)
		testkit.MustEqual(t, strings.HasSuffix(a.hub, "/"), false, "%q names the hub %q", text, a.hub)
		shown := a.path()
		if strings.Contains(shown, "%") || strings.Contains(shown, "://") || strings.Contains(shown, "//") || a.publisher != "" {
			return // reading it again would unescape it again
		}
		if a.node != nodeNone && a.node != nodeClaims && parseAddress(shown) != a {
			t.Fatalf("%q is %+v, which as %q is %+v", text, a, shown, parseAddress(shown))
		}
	})
}
