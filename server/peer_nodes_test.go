package server

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// peerPort is a port that nobody has, nor the one at which nodes are let in beside it.
func peerPort(t *testing.T) string {
	t.Helper()
	for {
		host := parts.OwnLoopback()
		l := testkit.Value(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
		port := l.Addr().(*net.TCPAddr).Port
		below, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port-2000)))
		testkit.Must(t, l.Close())
		if err == nil {
			testkit.Must(t, below.Close())
			return l.Addr().String()
		}
	}
}

// C1, C8: nodes without a server join the three that have one, by a bundle and without a folder; what one takes
// in the others give. They go on when a peer is away.
func TestNodesBesidePeers(t *testing.T) {
	natstest.NeedsNoDetector(t)
	testengine.NeedsFiles(t)
	addresses := map[string]bool{}
	for len(addresses) < 3 {
		addresses[peerPort(t)] = true
	}
	var all []string
	for address := range addresses {
		all = append(all, address)
	}
	made := testkit.Value(NewBundles(filepath.Join(t.TempDir(), "bundles"), "shop", strings.Join(all, ","), "far-1", "far-2"))(t)
	nodes := make([]*running, len(made))
	begin := func(i int) {
		nodes[i] = start(t, Config{
			Log: testkit.Quiet(), DataDir: filepath.Join(t.TempDir(), "data"), Peer: Peer{Bundle: testkit.Value(ReadBundle(made[i].File))(t)},
			HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off,
		})
	}
	var starting sync.WaitGroup
	for i := range made { // those without a server wait for the others
		starting.Go(func() { begin(i) })
	}
	starting.Wait()
	far, near := nodes[3], nodes[0]
	far.want(http.StatusCreated, "POST", "/api/v1/hubs", `{"name":"orders","partitions":2}`)
	far.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"event 0 of 0"}],"partition":"0"}`)
	near.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"event 0 of 1"}],"partition":"1"}`)
	for _, r := range nodes {
		r.wantEvents(2, 0)
	}
	for _, name := range []string{"far-1", "far-2", nodes[2].cfg.nodeName()} {
		testkit.Eventually(t, "the status names "+name, func() bool {
			return strings.Contains(far.want(http.StatusOK, "GET", "/api/v1/cluster", ""), `"`+name+`"`)
		})
	}
	for _, name := range []string{"eventyard_disk_free_bytes", "eventyard_disk_size_bytes"} { // V7
		has := regexp.MustCompile(`(?m)^` + name + ` [1-9]`)
		testkit.That(t, has.MatchString(near.want(http.StatusOK, "GET", "/metrics", "")), "a peer does not tell %s", name)
		testkit.That(t, !has.MatchString(far.want(http.StatusOK, "GET", "/metrics", "")), "a node without a server tells %s", name)
	}
	nodes[2].shutdown()
	testkit.Eventually(t, "events to be taken without one of the peers", func() bool {
		code, _ := far.do("POST", "/api/v1/hubs/orders/events", `{"events":[{"body":"event 1 of 0"}],"partition":"0"}`)
		return code == http.StatusCreated
	})
	found, err := filepath.Glob(filepath.Join(far.Server.cfg.DataDir, "*"))
	testkit.That(t, err == nil && len(found) == 0, "a node without a server keeps %v (%v)", found, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = TakePart(ctx, Location{DataDir: t.TempDir(), Peer: far.cfg.Peer}, "test", testkit.Quiet(), func() {})
	testkit.That(t, err != nil && strings.Contains(err.Error(), "a node without a server"), "it lends its server: %v", err)
	var stopping sync.WaitGroup
	for _, i := range []int{3, 4} {
		stopping.Go(nodes[i].shutdown)
	}
	stopping.Wait()
}
