package server

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// admin gives a client of the yard.
func (r *running) admin() *admin.Client {
	client, err := admin.New(admin.Config{Server: r.url})
	testkit.Must(r.t, err)
	r.t.Cleanup(client.Close)
	return client
}

// activity waits until an entry of a kind about an object is in the journal.
func (r *running) activity(client *admin.Client, kind, object string) (found admin.Activity) {
	r.t.Helper()
	testkit.Eventually(r.t, kind+" of "+object, func() bool {
		page, err := client.Activity(r.t.Context(), admin.ActivityQuery{Kinds: []string{kind}, Object: object, Limit: 1})
		testkit.Must(r.t, err)
		if len(page.Activity) > 0 {
			found = page.Activity[0]
		}
		return len(page.Activity) > 0
	})
	return found
}

// V5: what operators do is in the journal with who and from where, over every API; it is there after a
// restart, and in a yard that was restored from a backup.
func TestActivity(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "configured"}}
	r := start(t, cfg)
	client := r.admin()
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	r.want(200, "PATCH", "/api/v1/hubs/orders", `{"retention":{"age":"1h"}}`)
	r.want(201, "POST", "/api/v1/hubs/orders/groups", `{"name":"billing"}`)
	r.want(200, "PUT", "/api/v1/hubs/orders/groups/billing/checkpoints/0", `{"to":{"earliest":true}}`)
	r.want(201, "POST", "/api/v1/policies", `{"name":"till","rights":["Send"]}`)
	r.want(200, "POST", "/api/v1/policies/till/regenerate", `{"key":"primary"}`)
	r.want(200, "GET", "/api/v1/policies/till", "")
	r.want(201, "POST", "/api/v1/topics", `{"name":"shop"}`)
	r.want(200, "POST", "/topics/shop/listKeys", "")
	r.want(204, "DELETE", "/api/v1/hubs/orders/groups/billing", "")

	made := r.activity(client, "hub.created", "hubs/orders")
	testkit.That(t, made.By == "RootManageSharedAccessKey" && made.Address == "127.0.0.1" && made.Node != "", "it was created by %+v", made)
	testkit.Equal(t, r.activity(client, "hub.created", "hubs/configured").By, "configuration")
	testkit.Slices(t, r.activity(client, "hub.changed", "hubs/orders").Fields, []string{"retention"})
	testkit.Slices(t, r.activity(client, "key.regenerated", "policies/till").Fields, []string{"primary"})
	testkit.Equal(t, r.activity(client, "checkpoint", "hubs/orders/groups/billing").Detail, "partition 0 from nothing to -1")
	for kind, object := range map[string]string{
		"node.came": "nodes", "group.created": "hubs/orders", "group.deleted": "hubs/orders/groups/billing", "policy.created": "policies",
		"topic.created": "topics/shop", "key.revealed": "topics/shop",
	} {
		r.activity(client, kind, object)
	}
	all := r.want(200, "GET", "/api/v1/activity", "")
	secret := r.want(200, "GET", "/api/v1/policies/till", "")
	var policy admin.Policy
	testkit.Must(t, json.Unmarshal([]byte(secret), &policy))
	testkit.That(t, policy.SecondaryKey != "" && !strings.Contains(all, policy.SecondaryKey), "a key is in the journal")

	dir := t.TempDir() + "/backup"
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	testkit.Value(r.backUp(dir))(t)
	r.activity(client, "backup.taken", "")
	r.shutdown()
	for name, again := range map[string]Config{"the same": cfg, "a restored one": restore(t, cfg, dir)} {
		t.Run(name, func(t *testing.T) {
			r := start(t, again)
			client := r.admin()
			testkit.Deep(t, r.activity(client, "hub.created", "hubs/orders"), made)
			if name == "the same" {
				r.activity(client, "node.left", "nodes")
			}
		})
	}
}

// V5, C4: who manages a hub sees what became of it and what is in it since it was made, and of nothing else.
func TestActivityOfAHub(t *testing.T) {
	r := start(t, quick(t))
	client := r.admin()
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
	first := r.activity(client, "hub.created", "hubs/orders")
	r.want(204, "DELETE", "/api/v1/hubs/orders", "")
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders2","partitions":1}`)
	r.activity(client, "hub.created", "hubs/orders2")
	page, err := client.Activity(t.Context(), admin.ActivityQuery{Hub: "orders"})
	testkit.Must(t, err)
	for _, a := range page.Activity {
		testkit.That(t, a.Object == "hubs/orders" && a.Number > first.Number, "it has %+v", a)
	}
	status, _ := r.do("GET", "/api/v1/hubs/orders/activity?object=hubs/orders2", "")
	testkit.Equal(t, status, http.StatusBadRequest, "status for another hub's")
	status, _ = r.do("GET", "/api/v1/hubs/none/activity", "")
	testkit.Equal(t, status, http.StatusNotFound, "status for no hub's")
}

// V5: a watch gives what changes, as it does, and goes on behind what was seen.
func TestActivityIsWatched(t *testing.T) {
	r := start(t, quick(t))
	client := r.admin()
	r.want(201, "POST", "/api/v1/hubs", `{"name":"one","partitions":1}`)
	seen := r.activity(client, "hub.created", "hubs/one").Number
	r.want(201, "POST", "/api/v1/hubs", `{"name":"two","partitions":1}`)
	var got []string
	for a, err := range client.WatchActivity(t.Context(), admin.ActivityQuery{Kinds: []string{"hub"}, After: &seen}, nil) {
		testkit.Must(t, err)
		if got = append(got, a.Kind+" "+a.Object); len(got) == 1 {
			r.want(204, "DELETE", "/api/v1/hubs/two", "")
		}
		if len(got) == 2 {
			break
		}
	}
	testkit.Slices(t, got, []string{"hub.created hubs/two", "hub.deleted hubs/two"})
	for _, query := range []string{"watch=maybe", "since=tomorrow", "before=x", "limit=0", "watch=true&after=x"} {
		status, _ := r.do("GET", "/api/v1/activity?"+query, "")
		testkit.Equal(t, status, http.StatusBadRequest, "status for %s", query)
	}
}
