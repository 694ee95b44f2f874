package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V5: who is connected is listed with what it shows, by pages, and which key of a policy was used.
func TestConnections(t *testing.T) {
	r := start(t, quick(t))
	r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
	made := testkit.Value(r.admin().CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "till", Rights: []string{"Manage"}}))(t)
	client := testkit.Value(r.Dial(t.Context(), hub.Config{}))(t)
	defer client.Close()
	testkit.Must(t, testkit.Err(client.Hub("orders").Info(t.Context())))
	till := testkit.Value(admin.New(admin.Config{Server: r.url, ConnectionString: "Endpoint=sb://localhost/;SharedAccessKeyName=till;SharedAccessKey=" + made.SecondaryKey}))(t)
	defer till.Close()

	all := testkit.Value(till.Connections(t.Context(), "", 0))(t)
	protocols := map[string]admin.Connection{}
	for _, one := range all.Connections {
		protocols[one.Protocol] = one
	}
	testkit.Equal(t, all.Total, len(all.Connections), "connections in all")
	links := protocols[admin.ProtocolAMQP]
	testkit.That(t, links.ReceivedBytes > 0 && links.SentBytes > 0 && !links.Since.IsZero(), "AMQP has %+v", links)
	testkit.That(t, protocols[admin.ProtocolHTTP].Requests > 0 && protocols[admin.ProtocolHTTP].Address != "", "HTTP has %+v", protocols[admin.ProtocolHTTP])
	var use admin.KeyUse
	for _, one := range all.Keys {
		if one.Policy == "policies/till" {
			use = one
		}
	}
	testkit.That(t, use.Primary == nil && use.Secondary != nil && !all.Since.IsZero(), "the keys were used: %+v", use)

	var paged []string
	for after := ""; ; {
		page := testkit.Value(till.Connections(t.Context(), after, 1))(t)
		for _, one := range page.Connections {
			paged = append(paged, one.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	testkit.Equal(t, len(paged), all.Total, "connections of all pages")
}

// V5, C4: connections are those of all nodes, whichever is asked; a key counts as used that only another node has seen;
// and a node that does not answer is named.
func TestConnectionsOfSeveralNodes(t *testing.T) {
	s, wire := newShared(t), &clustertest.Network{}
	s.wire = wire
	nodes := s.startAll(s.named("node-1", "node-2")...)
	made := testkit.Value(nodes[0].admin().CreatePolicy(t.Context(), "", admin.PolicyRequest{Name: "till", Rights: []string{"Manage"}}))(t)
	used := func(at *running, key string) {
		till := testkit.Value(admin.New(admin.Config{Server: at.url, ConnectionString: "Endpoint=sb://localhost/;SharedAccessKeyName=till;SharedAccessKey=" + key}))(t)
		t.Cleanup(till.Close)
		testkit.Eventually(t, "the node lets the key in", func() bool { return testkit.Err(till.Overview(t.Context())) == nil })
	}
	used(nodes[0], made.PrimaryKey)
	used(nodes[1], made.SecondaryKey)
	for _, node := range nodes {
		node.awaitNodes(len(nodes), "")
	}
	for _, asked := range nodes {
		all := testkit.Value(asked.admin().Connections(t.Context(), "", 0))(t)
		of := map[string]int{}
		for _, one := range all.Connections {
			of[one.Node]++
		}
		testkit.That(t, of["node-1"] > 0 && of["node-2"] > 0 && len(of) == 2, "the connections are of %v", of)
		testkit.Equal(t, all.Total, of["node-1"]+of["node-2"], "connections in all")
		testkit.Equal(t, strings.Join(all.Unanswered, " "), "", "nodes that did not answer")
		var use admin.KeyUse
		for _, one := range all.Keys {
			if one.Policy == "policies/till" {
				use = one
			}
		}
		testkit.That(t, use.Primary != nil && use.Secondary != nil, "the keys, of which each node has seen one, were used: %+v", use)
	}

	wire.Inject(func(_ context.Context, r cluster.Request) error {
		if r.Subject == "connections.list" {
			return errors.New("the node is away")
		}
		return nil
	}, nil)
	left := testkit.Value(nodes[0].admin().Connections(t.Context(), "", 0))(t)
	testkit.Equal(t, strings.Join(left.Unanswered, " "), "node-2", "nodes that did not answer")
	testkit.That(t, left.Total > 0 && left.Total == len(left.Connections), "of this node are %d connections, and listed %d", left.Total, len(left.Connections))
}

// The latest use of a key counts, whichever node has seen it.
func TestTheLatestUseOfAKeyCounts(t *testing.T) {
	at := func(second int) *admin.Time { return &admin.Time{Time: time.Unix(int64(second), 0)} }
	uses := map[string]*admin.KeyUse{}
	for _, u := range []admin.KeyUse{
		{Policy: "policies/till", Primary: at(2)}, {Policy: "policies/till", Primary: at(3), Secondary: at(5)}, {Policy: "policies/till", Primary: at(1)}, {Policy: "policies/other", Secondary: at(9)},
	} {
		addUse(uses, u)
	}
	testkit.Equal(t, len(uses), 2, "policies")
	testkit.Equal(t, *uses["policies/till"].Primary, *at(3), "the primary key")
	testkit.Equal(t, *uses["policies/till"].Secondary, *at(5), "the secondary key")
}

// What accounts name policies by is shown as the API names them.
func TestHolderNames(t *testing.T) {
	for account, want := range map[string]string{
		"policies/namespace/till": "policies/till", "policies/hubs/a%2Fb/17/own": "hubs/a%2Fb/policies/own", "ann@example.com": "ann@example.com", "": "",
	} {
		testkit.Equal(t, holderName(account), want)
	}
}
