package oidc

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestClaims(t *testing.T) {
	whole := func(r auth.Rights) []auth.Scope { return []auth.Scope{{Rights: r}} }
	tests := []struct {
		what, claims string
		want         []auth.Scope
	}{
		{"none", `{}`, nil},
		{"a list of roles", `{"roles":["Send","Listen"]}`, whole(auth.Send | auth.Listen)},
		{"a role as text", `{"roles":"Manage"}`, whole(auth.Manage)},
		{"a role is one, whatever words it has", `{"roles":["Send Listen","may not Manage"]}`, nil},
		{"also as text", `{"roles":"Send Listen"}`, nil},
		{"scope as OAuth writes it", `{"scope":"openid Listen profile"}`, whole(auth.Listen)},
		{"scp as Microsoft writes it", `{"scp":"send"}`, whole(auth.Send)},
		{"scp as a list", `{"scp":["SEND"]}`, whole(auth.Send)},
		{"all three add up", `{"roles":["Send"],"scope":"Listen","scp":"x"}`, whole(auth.Send | auth.Listen)},
		{"scopes are words", `{"scope":"Send:orders Listen:orders"}`, []auth.Scope{{Path: "orders", Rights: auth.Send | auth.Listen}}},
		{"whatever the first of them is", `{"scope":"Send:orders openid"}`, []auth.Scope{{Path: "orders", Rights: auth.Send}}},
		{"in scp as well", `{"scp":"Manage:a Send"}`, []auth.Scope{{Path: "a", Rights: auth.Manage}, {Rights: auth.Send}}},
		{"in lists as well", `{"scp":["Send:a Listen:b"]}`, []auth.Scope{{Path: "a", Rights: auth.Send}, {Path: "b", Rights: auth.Listen}}},
		{"so they hold no role of Azure's", `{"scope":"Azure Event Hubs Data Owner"}`, nil},
		{"hubs", `{"roles":["Send:Orders","Listen:a/B","Listen:orders"]}`, []auth.Scope{{Path: "orders", Rights: auth.Send | auth.Listen}, {Path: "a/b", Rights: auth.Listen}}},
		{"a hub beside the namespace", `{"scope":"Listen Send:orders"}`, []auth.Scope{{Rights: auth.Listen}, {Path: "orders", Rights: auth.Send}}},
		{"Azure's roles", `{"roles":["Azure Event Hubs Data Sender"]}`, whole(auth.Send)},
		{"in any case", `{"roles":["azure event hubs data RECEIVER"]}`, whole(auth.Listen)},
		{"as text", `{"roles":"Azure Event Hubs Data Owner"}`, whole(auth.Manage)},
		{"for a hub", `{"roles":["Azure Event Hubs Data Owner:orders"]}`, []auth.Scope{{Path: "orders", Rights: auth.Manage}}},
		{"an unknown role", `{"roles":["Admin"]}`, nil},
		{"a colon without a hub is not the namespace", `{"roles":["Manage:"]}`, nil},
		{"nor are slashes", `{"roles":["Manage:/"]}`, nil},
		{"nor blanks", `{"roles":["Manage: "]}`, nil},
		{"a colon without a right", `{"roles":[":orders"]}`, nil},
		{"a hub with a blank is none", `{"roles":["Send: orders","Send:orders ","Send:my orders","Send:my\torders"]}`, nil},
		{"what is neither text nor list is passed over", `{"roles":{"a":"Send"},"scope":7,"scp":null}`, nil},
		{"also in a list", `{"roles":[7,"Send",null,["Listen"]]}`, whole(auth.Send)},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			var c claims
			testkit.Must(t, json.Unmarshal([]byte(tt.claims), &c))
			testkit.Slices(t, c.scopes(), tt.want)
		})
	}
}

// Whatever a claim holds, it is read without harm, and gives no right that its text does not name.
func FuzzClaims(f *testing.F) {
	f.Add(`{"roles":["Send:Orders","x"],"scope":"Listen"}`)
	f.Add(`{"roles":"Manage:"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var c claims
		if json.Unmarshal([]byte(text), &c) != nil {
			return
		}
		for _, s := range c.scopes() {
			if s.Rights == 0 || s.Rights&^auth.Manage != 0 || auth.PathOf(s.Path) != s.Path {
				t.Errorf("%q gives %+v", text, s)
			}
			if _, err := auth.ParseRights(s.Rights.Names()); errors.Is(err, auth.ErrRights) {
				t.Errorf("%q gives %v", text, s.Rights)
			}
		}
	})
}
