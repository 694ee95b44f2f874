package auth

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// always is the view of somebody for whom nothing ever ends.
func always(Scope) bool { return true }

func TestGrantAllows(t *testing.T) {
	now := time.Unix(1700000000, 0)
	one := func(path string, rights Rights) Grant { return Grant{Scopes: []Scope{{Path: path, Rights: rights}}} }
	until := func(at time.Time) Grant { return Grant{Scopes: []Scope{{Rights: Manage}}, Expires: at} }
	several := Grant{Scopes: []Scope{{Path: "a", Rights: Send}, {Path: "b", Rights: Listen}, {Path: "a/publishers/x", Rights: Listen}}}
	tests := []struct {
		what   string
		grant  Grant
		entity Entity
		need   Rights
		want   bool
	}{
		{"no grant allows nothing", Grant{}, Entity{}, 0, false},
		{"the namespace reaches itself", one("", Send), Entity{}, Send, true},
		{"the namespace reaches every hub", one("", Send), At("orders", "partitions", "0"), Send, true},
		{"a hub reaches itself", one("orders", Listen), At("Orders"), Listen, true},
		{"a hub reaches what is beneath it", one("orders", Listen), At("orders", "ConsumerGroups", "g", "Partitions", "0"), Listen, true},
		{"a hub does not reach the namespace", one("orders", Manage), Entity{}, Send, false},
		{"a hub does not reach another whose name begins like it", one("orders", Manage), At("orders2"), Send, false},
		{"nor one whose beginning it has", one("orders2", Manage), At("orders"), Send, false},
		{"a partition does not reach its hub", one("orders/partitions/0", Send), At("orders"), Send, false},
		{"a group reaches its partitions", one("orders/consumergroups/g", Listen), At("orders", "consumergroups", "g", "partitions", "0"), Listen, true},
		{"the right is needed", one("orders", Send), At("orders"), Listen, false},
		{"Manage is enough for all", one("orders", Manage), At("orders"), Send | Listen, true},
		{"zero asks for any right", one("orders", Listen), At("orders"), 0, true},
		{"but not for none", one("orders", 0), At("orders"), 0, false},
		{"each scope counts where it reaches", several, At("b"), Listen, true},
		{"and not elsewhere", several, At("b"), Send, false},
		{"scopes that meet add up", several, At("a", "publishers", "x"), Send | Listen, true},
		{"but only where they meet", several, At("a"), Send | Listen, false},
		{"a moment before its end it is good", until(now.Add(time.Nanosecond)), At("x"), Send, true},
		{"at its end it is over", until(now), At("x"), Send, false},
		{"and after", until(now.Add(-time.Hour)), At("x"), Send, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, tt.grant.While(always).Allows(tt.entity, tt.need, now), tt.want)
			testkit.Equal(t, tt.grant.Allows(tt.entity, tt.need, now), false, "it allows without a view of what it stands on")
		})
	}
}

// R4: a grant by several policies is counted for the first that is still there.
func TestWhoAGrantIsCountedFor(t *testing.T) {
	gone := map[string]bool{}
	stands := func(s Scope) bool { return !gone[s.Basis.Policy] }
	scope := func(policy string) Scope { return Scope{Rights: Send, Basis: Basis{Policy: policy}} }
	g := Grant{Scopes: []Scope{scope("a"), scope("b")}, Holder: "till"}.While(stands)
	testkit.Equal(t, g.Account(), "a")
	gone["a"] = true
	testkit.Equal(t, g.Account(), "b", "without the first")
	gone["b"] = true
	testkit.Equal(t, g.Account(), "till", "without either")
	testkit.Equal(t, Grant{Scopes: []Scope{scope("")}, Holder: "somebody"}.While(stands).Account(), "somebody", "a bearer token's")
}

// H9: names of hubs may have slashes, so one hub's name may be the beginning of another's
// without being above it, whether it exists or not.
func TestGrantDoesNotReachIntoAnotherHub(t *testing.T) {
	tests := []struct {
		what, scope string
		entity      Entity
		want        bool
	}{
		{"a hub has its groups", "a", At("a", "consumergroups", "g"), true},
		{"not the hub of a longer name", "a", At("a/b"), false},
		{"nor what is in that", "a", At("a/b", "partitions", "0"), false},
		{"the longer one has its own", "a/b", At("a/b", "partitions", "0"), true},
		{"and not what a hub of the shorter name has there", "a/b", At("a", "b"), false},
		{"a part of a hub is no hub that is named like it", "a/partitions/0", At("a/partitions/0"), false},
		{"nor is such a hub's scope that part", "a/consumergroups", At("a/consumergroups/g"), false},
		{"the namespace has all", "", At("a/b"), true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant := Grant{Scopes: []Scope{{Path: tt.scope, Rights: Send}}}.While(always)
			testkit.Equal(t, grant.Allows(tt.entity, Send, time.Now()), tt.want)
		})
	}
}

// R1: names of groups and publishers count as a whole, and in their case where that makes another.
func TestGrantComparesWholeNames(t *testing.T) {
	tests := []struct {
		what, resource string
		entity         Entity
		want           bool
	}{
		{"a publisher's is for it", "H/Publishers/dev1", At("h", "publishers", "dev1"), true},
		{"not for another case, which is another key", "h/publishers/dev1", At("h", "publishers", "DEV1"), false},
		{"nor the other way round", "h/publishers/Dev1", At("h", "publishers", "dev1"), false},
		{"but its own case is kept", "h/publishers/Dev1", At("H", "Publishers", "Dev1"), true},
		{"not for a longer name with a slash", "h/publishers/dev1", At("h", "publishers", "dev1/x"), false},
		{"a group's is for it", "h/consumergroups/g1", At("h", "ConsumerGroups", "g1"), true},
		{"and for its partitions", "h/consumergroups/g1", At("h", "ConsumerGroups", "g1", "Partitions", "0"), true},
		{"not for a group of a longer name", "h/consumergroups/g1", At("h", "ConsumerGroups", "g1/sub"), false},
		{"nor for the partitions of that", "h/consumergroups/g1", At("h", "ConsumerGroups", "g1/sub", "Partitions", "0"), false},
		{"nor for one that is named like a partition of it", "h/consumergroups/g1", At("h", "ConsumerGroups", "g1/partitions/0"), false},
		{"the longer name has its own", "h/consumergroups/g1/sub", At("h", "ConsumerGroups", "g1/sub", "Partitions", "0"), true},
		{"and not the shorter one's", "h/consumergroups/g1/sub", At("h", "ConsumerGroups", "g1"), false},
		{"another case is another group", "h/consumergroups/g1", At("h", "ConsumerGroups", "G1"), false},
		{"except the default group's", "h/consumergroups/$DEFAULT", At("h", "ConsumerGroups", "$Default", "Partitions", "0"), true},
		{"a partition of a group is that one", "h/ConsumerGroups/g/Partitions/1", At("h", "consumergroups", "g", "partitions", "1"), true},
		{"and no other", "h/ConsumerGroups/g/Partitions/1", At("h", "consumergroups", "g", "partitions", "11"), false},
		{"nor the group", "h/ConsumerGroups/g/Partitions/1", At("h", "consumergroups", "g"), false},
		{"all groups are all", "h/consumergroups/", At("h", "consumergroups", "g/x"), true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			path := testkit.Value(Path("sb://ns/" + tt.resource))(t)
			grant := Grant{Scopes: []Scope{{Path: path, Rights: Send}}}.While(always)
			testkit.Equal(t, grant.Allows(tt.entity, Send, time.Now()), tt.want)
		})
	}
}

// H9: a scope counts only as long as what it stands on is there.
func TestGrantStandsOnItsBasis(t *testing.T) {
	gone := map[string]bool{}
	scopes := []Scope{
		{Path: "a", Rights: Send, Basis: Basis{Policy: "one"}},
		{Path: "a", Rights: Listen, Basis: Basis{Policy: "two"}},
	}
	grant := Grant{Scopes: scopes, Holder: "h"}.While(func(s Scope) bool { return !gone[s.Basis.Policy] })
	check := func(rights Rights, ended bool) {
		t.Helper()
		if got := grant.Rights(At("a")); got != rights || grant.Stands() != (rights != 0) {
			t.Errorf("it gives %s, and that it stands is %t", got, grant.Stands())
		}
		left, got := grant.Trimmed()
		if got != ended || left.Rights(At("a")) != rights || left.Holder != "h" {
			t.Errorf("%+v is left, and that some ended is %t", left, got)
		}
	}
	check(Send|Listen, false)
	gone["one"] = true
	check(Listen, true)
	gone["two"] = true
	check(0, true)
	testkit.Slices(t, grant.Scopes, scopes, "the grant itself was changed")
	testkit.Equal(t, (Grant{Scopes: []Scope{{}}}).While(always).Stands(), false, "a scope without rights stands for something")
}

// R1: who may read metrics has no right to anything else, not even the least.
func TestMetricsAreNoRightToAnEntity(t *testing.T) {
	grant := Grant{Scopes: []Scope{{Rights: Metrics}}}.While(func(Scope) bool { return true })
	now := time.Now()
	testkit.That(t, grant.Allows(Entity{}, Metrics, now), "metrics are not allowed")
	testkit.That(t, !grant.Allows(Entity{}, 0, now) && !grant.Allows(At("a"), 0, now) && !grant.Opens(), "something else is allowed")
	testkit.That(t, grant.Stands(), "the grant counts as ended")
	testkit.That(t, !Manage.Has(Metrics) && !Metrics.Has(Send), "rights have each other")
}
