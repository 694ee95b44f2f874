package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// onServers is a node of a yard on real servers.
func onServers(servers *natstest.Servers, node, key string) Config {
	return Config{
		Engine: servers.URL() + "?yard=shop", Node: node, Version: "1.2.3", Log: testkit.Quiet(), Secrets: Secrets{Key: key},
		HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off,
	}
}

// awaitReady waits until readyz answers a status, and gives its answer. A node is quiet, and servers
// have a leader again, within some seconds.
func (r *running) awaitReady(want int) (answer string) {
	r.t.Helper()
	testkit.Eventually(r.t, fmt.Sprintf("readyz answers %d", want), func() bool {
		var status int
		status, answer = r.do("GET", "/readyz", "")
		return status == want
	})
	return answer
}

// C5, C8: a node says that it is not ready while the servers have no majority, goes on by itself when
// they have one again, and is alive throughout.
func TestReadinessFollowsTheServers(t *testing.T) {
	servers := natstest.Start(t, 3)
	r := start(t, onServers(servers, "a", sealed.NewKey()))
	r.want(http.StatusOK, "GET", "/readyz", "")
	servers.Stop(t, 1)
	servers.Stop(t, 2)
	said := r.awaitReady(http.StatusServiceUnavailable)
	testkit.That(t, strings.Contains(said, "most of them have to run"), "it says %s", said)
	r.want(http.StatusOK, "GET", "/healthz", "")
	status := testkit.Value(client(t, r).Cluster(t.Context()))(t)
	// A server that is left may go on telling what it knows of the streams.
	known := len(status.Problems) > 0 || status.Streams != nil && status.Streams.Leaderless+status.Streams.Lagging+status.Streams.Offline > 0
	testkit.That(t, status.Nodes[0].State == admin.NodeQuiet && status.Servers != nil && known, "without a majority it shows %+v", status)
	servers.Restart(t, 1)
	r.awaitReady(http.StatusOK)
}

func client(t *testing.T, r *running) *admin.Client {
	c := testkit.Value(admin.New(admin.Config{Server: r.url}))(t)
	t.Cleanup(c.Close)
	return c
}

// C8: a node shows all nodes with their shards, the servers as it found them, and what is not well
// with the streams.
func TestStatusOfNodesAndServers(t *testing.T) {
	servers, key := natstest.Start(t, 3), sealed.NewKey()
	here, there := start(t, onServers(servers, "a", key)), start(t, onServers(servers, "b", key))
	asked := client(t, there)
	var c admin.Cluster
	testkit.Eventually(t, "both hold shards", func() bool {
		c = testkit.Value(asked.Cluster(t.Context()))(t)
		return len(c.Nodes) == 2 && c.Nodes[0].Shards > 0 && c.Nodes[1].Shards > 0 && c.UnheldShards == 0
	})
	testkit.That(t, c.Node == "b" && c.Engine == "nats" && len(c.Problems) == 0, "it is %+v", c)
	for i, name := range []string{"a", "b"} {
		n := c.Nodes[i]
		testkit.That(t, n.Name == name && n.Version == "1.2.3" && n.State == admin.NodeLive && !n.Started.IsZero(), "node %+v", n)
	}
	testkit.Equal(t, c.Nodes[0].Shards+c.Nodes[1].Shards, 64, "shards")
	testkit.That(t, c.Servers.Yard == "shop" && c.Servers.Replicas == 3 && len(c.Servers.Addresses) == 3, "servers %+v", c.Servers)
	connections := 0
	for _, s := range c.Servers.Known {
		testkit.That(t, s.Version != "" && s.MaxPayload == 8<<20 && s.Sync == admin.SyncUnknown, "server %+v", s)
		connections += len(s.Connections)
	}
	testkit.Equal(t, connections, 3, "connections")
	testkit.That(t, len(c.Servers.Warnings) == 1 && strings.Contains(c.Servers.Warnings[0], "sync_interval"), "warnings %q", c.Servers.Warnings)
	testkit.That(t, c.Streams.Count > 0 && c.Streams.Messages > 0 && c.Streams.Bytes > 0 && len(c.Streams.Lost) == 0, "streams %+v", c.Streams)

	testkit.Must(t, testkit.Err(asked.CreateHub(t.Context(), admin.HubRequest{Name: "Orders", Partitions: new(1)})))
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	for name := range js.StreamNames(t.Context()).Name() {
		if strings.Contains(name, "_l=h-") && strings.Contains(name, "orders") {
			testkit.Must(t, js.DeleteStream(t.Context(), name))
		}
	}
	c = testkit.Value(asked.Cluster(t.Context()))(t)
	testkit.That(t, len(c.Streams.Lost) == 1 && c.Streams.Lost[0].Hub == "Orders" && c.Streams.Lost[0].Log != "", "lost %+v", c.Streams.Lost)

	here.shutdown()
	servers.Stop(t, 2)
	testkit.Eventually(t, "one node is left, and a replica of every stream is offline", func() bool {
		c = testkit.Value(asked.Cluster(t.Context()))(t)
		return len(c.Nodes) == 1 && c.Streams != nil && c.Streams.Leaderless == 0 && c.Streams.Offline == c.Streams.Count
	})
	testkit.That(t, len(c.Streams.Worst) > 0 && c.Streams.Worst[0].Replicas[0].Server == "n2", "the worst are %+v", c.Streams.Worst)
}

// C1, C6, C7: over HTTP the number of replicas is raised while the yard serves, is not lowered unless that is
// said, and a scrub of all copies names the hub, the partition and what to do where something is wrong.
func TestReplicasAndScrubOverHTTP(t *testing.T) {
	servers := natstest.Start(t, 3)
	cfg := onServers(servers, "a", sealed.NewKey())
	cfg.Engine += "&replicas=1"
	r := start(t, cfg)
	c := client(t, r)
	testkit.Must(t, testkit.Err(c.CreateHub(t.Context(), admin.HubRequest{Name: "Orders", Partitions: new(1)})))
	r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"one"},{"body":"two"}]}`)
	done := testkit.Value(c.SetReplicas(t.Context(), admin.ReplicasRequest{Replicas: 3}, nil))(t)
	testkit.That(t, done.Replicas == 3 && done.Before == 1 && done.Changed == done.Streams && done.Streams >= 8, "it changed %+v", done)
	for want, ask := range map[string]admin.ReplicasRequest{"fewer-replicas": {Replicas: 1}, "too-few-servers": {Replicas: 5}} {
		_, err := c.SetReplicas(t.Context(), ask, nil)
		problem, is := errors.AsType[*admin.Problem](err)
		testkit.That(t, is && problem.Kind() == want && problem.Next != "", "%d replicas: %v", ask.Replicas, err)
	}
	var found []admin.ScrubFinding
	scrub := func() admin.Scrub {
		found = nil
		return testkit.Value(c.Scrub(t.Context(), admin.ScrubRequest{}, func(l admin.ScrubLine) {
			if l.Finding != nil {
				found = append(found, *l.Finding)
			}
		}))(t)
	}
	testkit.Eventually(t, "all servers answer", func() bool { return len(scrub().Problems) == 0 })
	testkit.That(t, len(found) == 0, "it found %+v", found)
	last := testkit.Value(c.Cluster(t.Context()))(t).Scrub
	testkit.That(t, last != nil && last.Node == "a" && last.Findings == 0, "the status has a scrub %+v", last)

	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	for name := range js.StreamNames(t.Context()).Name() {
		if !strings.HasPrefix(name, "Y_shop_l=h-orders-") {
			continue
		}
		stream := testkit.Value(js.Stream(t.Context(), name))(t)
		subject := strings.Replace(stream.CachedInfo().Config.Subjects[0], "*", "0", 1)
		last := testkit.Value(stream.GetLastMsgForSubject(t.Context(), subject))(t)
		last.Data[len(last.Data)-1] ^= 1
		testkit.Must(t, testkit.Err(js.Publish(t.Context(), last.Subject, last.Data)))
	}
	all := scrub()
	testkit.MustThat(t, len(found) == 1 && all.Findings == 1 && len(all.Servers) == 3 && all.Node == "a", "it found %+v: %+v", found, all)
	f := found[0]
	testkit.That(t, f.Kind == admin.FindingDamaged && f.Hub == "Orders" && f.Partition == "0" && f.FirstEvent == nil && f.LastMessage > 1 && f.Server == "" && f.Next != "", "it found %+v", f)
	last = testkit.Value(c.Cluster(t.Context()))(t).Scrub
	testkit.That(t, last != nil && last.Findings == 1 && strings.HasPrefix(last.First, "hub Orders, partition 0: "), "the status has a scrub %+v", last)
	needs := testkit.Value(c.Overview(t.Context()))(t).Needs
	testkit.That(t, slices.ContainsFunc(needs, func(n admin.Need) bool { return n.Kind == "scrub-findings" }), "nobody is needed: %+v", needs)
}

// C8: on one machine there is one node, and nothing else.
func TestStatusOnOneMachine(t *testing.T) {
	testengine.NeedsFiles(t)
	cfg := quick(t)
	cfg.Node, cfg.Version = "only", "1.2.3"
	c := testkit.Value(client(t, start(t, cfg)).Cluster(t.Context()))(t)
	testkit.That(t, c.Node == "only" && c.Engine == "disk" && c.Servers == nil && c.Streams == nil && len(c.Problems) == 0 && c.UnheldShards == 0, "it is %+v", c)
	testkit.That(t, len(c.Nodes) == 1 && c.Nodes[0].Name == "only" && c.Nodes[0].Version == "1.2.3" && c.Nodes[0].State == admin.NodeLive, "nodes %+v", c.Nodes)
}

// C4, R1: whoever asks gets the authority that the listeners' certificates are of, with and without a
// data folder.
func TestAuthorityOverHTTP(t *testing.T) {
	for name, cfg := range map[string]Config{"folder": quick(t), "shared": newShared(t).config()} {
		cfg.AMQPS = "127.0.0.1:0"
		r := start(t, cfg)
		response, err := http.Get(r.url + "/api/v1/ca.pem")
		testkit.Must(t, err)
		text := testkit.Value(io.ReadAll(response.Body))(t)
		testkit.Must(t, response.Body.Close())
		pool := x509.NewCertPool()
		testkit.MustThat(t, response.StatusCode == http.StatusOK && pool.AppendCertsFromPEM(text), "%s: %d %s", name, response.StatusCode, text)
		testkit.That(t, !strings.Contains(string(text), "PRIVATE"), "%s: it has a key in it", name)
		conn, err := tls.Dial("tcp", r.host("amqps"), &tls.Config{RootCAs: pool, ServerName: "localhost"})
		testkit.Must(t, err, name)
		testkit.Must(t, conn.Close())
	}
	start(t, quick(t)).want(http.StatusNotFound, "GET", "/api/v1/ca.pem", "")
}
