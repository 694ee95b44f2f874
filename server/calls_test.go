package server

import (
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V2, C4: the journey of an event has the call with it, whichever node is asked: the one that has called the function
// remembers it, and the other asks.
func TestAJourneyHasTheCallsOfAnotherNode(t *testing.T) {
	s := newShared(t)
	s.wire, s.prompt = &clustertest.Network{}, true
	nodes := s.startAll(s.named("node-1", "node-2")...)
	hook := newReceiver(t)
	testkit.Must(t, testkit.Err(nodes[0].admin().CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(1)})))
	for _, node := range nodes {
		node.awaitNodes(len(nodes), "orders")
		// Each node keeps events of its own here: whichever calls the function has this one.
		node.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `[{"body":{"n":1}}]`)
	}
	nodes[0].want(http.StatusCreated, "POST", "/api/v1/functions", `{"name":"billing","hub":"orders","endpoint":"`+hook.URL+`","start":"earliest"}`)
	hook.await(hook.got, `"n":1`)
	for _, node := range nodes {
		client := node.admin()
		testkit.Eventually(t, "the call is in the journey at "+node.cfg.Node, func() bool {
			found, err := client.HubEventJourney(t.Context(), "orders", "0", 0)
			if err != nil || len(found.Events) != 1 || len(found.Events[0].Functions) != 1 {
				return false
			}
			f := found.Events[0].Functions[0]
			return len(f.Calls) > 0 && f.Calls[len(f.Calls)-1].Outcome == "done" && len(f.Missing) == 0
		})
	}
}
