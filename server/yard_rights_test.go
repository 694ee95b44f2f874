package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R1: what a function of the yard keeps in its group is out of every client's reach: who may
// listen, and even who may manage, cannot make it pass over events, hold its circuit or take its
// partitions.
func TestFunctionsOfTheYardAreOutOfReach(t *testing.T) {
	hook := newReceiver(t)
	cfg := everyListener(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 1, Groups: []string{"others"}}}
	cfg.Policies = []Policy{{Name: "reader", Hub: "orders", Rights: []string{"listen"}, PrimaryKey: "reader-key-of-a-length-that-is-allowed-0123456789"}}
	cfg.Functions = []Function{{Name: "billing", Hub: "orders", Endpoint: new(hook.URL), Retries: new(admin.Retries(0))}}
	r := start(t, cfg)
	cs, err := auth.ParseConnectionString(r.Access().ConnectionString)
	testkit.Must(t, err)
	listening := cs
	listening.Policy, listening.Key, listening.Hub = "reader", cfg.Policies[0].PrimaryKey, "orders"
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":0}}]`)
	hook.await(hook.got, `"n":0`)                        // its work and its count are there
	for _, who := range []string{"listens", "manages"} { // who manages leaves records that others meet
		cs := map[string]auth.ConnectionString{"listens": listening, "manages": cs}[who]
		client, err := hub.Dial(t.Context(), cs.String(), hub.Config{Log: r.cfg.Log})
		testkit.Must(t, err)
		defer client.Close()
		call := func(operation, group string, q groupwire.Request) error {
			return testkit.Err(groupwire.CallHub(t.Context(), client.Hub("orders"), groupwire.Call{
				Operation: operation, Group: group, Body: testkit.Value(json.Marshal(q))(t), Secret: "a secret of some length",
			}))
		}
		for _, group := range []string{"billing", "others"} {
			about := groupwire.About{Group: group}
			for what, err := range map[string]error{
				"work": call(groupwire.OpPut, group, groupwire.PutRequest{About: about, Entry: groupwire.Entry{
					Key: "work/billing/0", Value: []byte(`{"epoch":99,"instance":"x","away":[[0,1000]]}`)}}),
				"circuit": call(groupwire.OpPut, group, groupwire.PutRequest{About: about, Entry: groupwire.Entry{
					Key: "circuit/billing", Value: []byte(`{"state":"held","term":1}`)}}),
				"presence": call(groupwire.OpPut, group, groupwire.PutRequest{About: about, Entry: groupwire.Entry{Key: "presence/" + who}}),
				"claim": call(groupwire.OpClaim, group, groupwire.ClaimRequest{About: about, Leases: []groupwire.Lease{
					{Partition: "0", Owner: who, Epoch: 9}}}),
			} {
				// In a group of their own instances have presences and leases, and who manages all.
				may := group == "others" && (who == "manages" || what == "presence" || what == "claim")
				testkit.Equal(t, errors.Is(err, hub.ErrUnauthorized), !may, "%s writes a %s in %s: %v", who, what, group, err)
			}
			testkit.Must(t, call(groupwire.OpEntries, group, groupwire.EntriesRequest{About: about}), "%s reads %s", who, group)
		}
		for _, prefix := range []string{"", "work/", "failures/", "circuit/"} {
			reply, err := groupwire.CallHub(t.Context(), client.Hub("orders"), groupwire.Call{
				Operation: groupwire.OpEntries, Group: "billing",
				Body: testkit.Value(json.Marshal(groupwire.EntriesRequest{About: groupwire.About{Group: "billing"}, Prefix: prefix}))(t),
			})
			testkit.Must(t, err)
			for _, kind := range []string{"work/", "failures/", "circuit/"} {
				testkit.That(t, !strings.Contains(string(reply), kind), "%s reads %s of the function: %s", who, kind, reply)
			}
			testkit.Equal(t, strings.Contains(string(reply), "presence/"), prefix == "", "%s sees instances by %q", who, prefix)
		}
	}
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}}]`)
	hook.await(hook.got, `"n":1`)
}
