package auth

import (
	"strings"
	"testing"
	"time"
)

func TestGrantAllows(t *testing.T) {
	now := time.Unix(1700000000, 0)
	one := func(path string, rights Rights) Grant { return Grant{Scopes: []Scope{{path, rights}}} }
	until := func(at time.Time) Grant { return Grant{Scopes: []Scope{{"", Manage}}, Expires: at} }
	several := Grant{Scopes: []Scope{{"a", Send}, {"b", Listen}, {"a/x", Listen}}}
	tests := []struct {
		what  string
		grant Grant
		path  string
		need  Rights
		want  bool
	}{
		{"no grant allows nothing", Grant{}, "", 0, false},
		{"the namespace reaches itself", one("", Send), "", Send, true},
		{"the namespace reaches every hub", one("", Send), "orders/partitions/0", Send, true},
		{"a hub reaches itself", one("orders", Listen), "orders", Listen, true},
		{"a hub reaches what is beneath it", one("orders", Listen), "orders/consumergroups/g/partitions/0", Listen, true},
		{"a hub does not reach the namespace", one("orders", Manage), "", Send, false},
		{"a hub does not reach another whose name begins like it", one("orders", Manage), "orders2", Send, false},
		{"nor one whose beginning it has", one("orders2", Manage), "orders", Send, false},
		{"a partition does not reach its hub", one("orders/partitions/0", Send), "orders", Send, false},
		{"the right is needed", one("orders", Send), "orders", Listen, false},
		{"Manage is enough for all", one("orders", Manage), "orders", Send | Listen, true},
		{"zero asks for any right", one("orders", Listen), "orders", 0, true},
		{"but not for none", one("orders", 0), "orders", 0, false},
		{"each scope counts where it reaches", several, "b", Listen, true},
		{"and not elsewhere", several, "b", Send, false},
		{"scopes that meet add up", several, "a/x/y", Send | Listen, true},
		{"but only where they meet", several, "a", Send | Listen, false},
		{"a moment before its end it is good", until(now.Add(time.Nanosecond)), "x", Send, true},
		{"at its end it is over", until(now), "x", Send, false},
		{"and after", until(now.Add(-time.Hour)), "x", Send, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if got := tt.grant.Allows(tt.path, tt.need, now); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// Names of hubs may have slashes, so one hub's name may be the beginning of another's
// path without being above it.
func TestGrantDoesNotReachIntoAnotherHub(t *testing.T) {
	hubs := map[string]bool{"a": true, "a/b": true}
	hubOf := func(path string) string {
		for ; path != ""; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
			if hubs[path] {
				return path
			}
		}
		return ""
	}
	tests := []struct {
		what, scope, path string
		want              bool
	}{
		{"a hub has its groups", "a", "a/consumergroups/g", true},
		{"not the hub of a longer name", "a", "a/b", false},
		{"nor what is in that", "a", "a/b/partitions/0", false},
		{"the longer one has its own", "a/b", "a/b/partitions/0", true},
		{"part of a hub has its parts", "a/consumergroups", "a/consumergroups/g", true},
		{"what is in no hub goes by its name alone", "c", "c/d", true},
		{"the namespace has all", "", "a/b", true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			grant := Grant{Scopes: []Scope{{tt.scope, Send}}}.Within(hubOf)
			if got := grant.Allows(tt.path, Send, time.Now()); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
	t.Run("a hub made later is another hub, too", func(t *testing.T) {
		grant := Grant{Scopes: []Scope{{"a", Send}}}.Within(hubOf)
		if !grant.Allows("a/new", Send, time.Now()) {
			t.Error("does not reach what is in its hub")
		}
		hubs["a/new"] = true
		if grant.Allows("a/new", Send, time.Now()) {
			t.Error("reaches into the new hub")
		}
	})
}
