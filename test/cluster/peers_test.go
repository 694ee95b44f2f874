package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// startPeers runs a yard of three nodes with a NATS server inside each, from the bundles that
// `cluster init` makes, until the test ends. One more is for a node without a server, as which the test listens. The program is built without the race detector, which would
// watch the servers, too.
func startPeers(t testing.TB, network *parts.Network) *yard {
	t.Helper()
	binary, bundles := parts.Eventyard(t, false), filepath.Join(t.TempDir(), "bundles")
	y := &yard{name: "test", network: network, key: auth.DevelopmentKey, bundle: filepath.Join(bundles, "listener.bundle")}
	var peers []string
	for i := range size {
		n := y.newNode(i, i)
		host, _, err := net.SplitHostPort(n.amqp)
		testkit.Must(t, err)
		n.route = net.JoinHostPort(host, "6222")
		peers = append(peers, n.name+"="+n.route)
	}
	out, err := exec.Command(binary, "cluster", "init", "--peers", strings.Join(peers, ","), "--nodes", "listener", "--yard", y.name, "--out", bundles).CombinedOutput()
	testkit.Must(t, err, "%s", out)
	for _, n := range y.nodes {
		data := "data"
		if n.host != nil && n.host.Disk != nil {
			data = filepath.Join(n.host.Disk.Folder, data)
		}
		n.install(t, binary, "--cluster-bundle", filepath.Join(bundles, n.name+".bundle"), "--cluster-listen", n.listen(t, n.route), "--data", data)
	}
	y.startAll(t)
	y.findKey(t)
	y.whole(t)
	return y
}

// whole waits until all nodes live, reach each other, and have all data, by the word of each of them.
func (y *yard) whole(t testing.TB) {
	t.Helper()
	y.await(t, "the yard is not whole", y.nodes, func(c admin.Cluster) bool {
		for _, s := range c.Servers.Known {
			if s.Unreached || s.Sync != admin.SyncAlways {
				return false
			}
		}
		return len(c.Nodes) == size && len(c.Servers.Known) == size && c.Servers.Inside && c.Servers.Leader != "" &&
			c.Streams.Count > 0 && c.Streams.Leaderless+c.Streams.Offline+c.Streams.Lagging == 0
	})
}

// settled waits until all nodes that run have all data, by the word of each of these.
func (y *yard) settled(t testing.TB, nodes ...*node) {
	t.Helper()
	y.await(t, "some data is at one node only", nodes, func(c admin.Cluster) bool {
		return c.Streams.Count > 0 && c.Streams.Leaderless+c.Streams.Lagging == 0
	})
}

// await waits until something is so by the word of each of some nodes.
func (y *yard) await(t testing.TB, what string, nodes []*node, is func(admin.Cluster) bool) {
	t.Helper()
	for _, n := range nodes {
		client := n.admin(t)
		eventually(t, what+", says "+n.name, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), tryTime)
			defer cancel()
			c, err := client.Cluster(ctx)
			return err == nil && c.Node == n.name && c.Servers != nil && c.Streams != nil && is(c)
		})
	}
}

// C1 to C5, C7, C8, R2: whatever happens to a node with a server inside, the same holds as for nodes on
// servers of their own; see TestNothingAcknowledgedIsLost. A node that is alone tells publishers what they try
// again after. Strangers are told nothing by the servers.
func TestPeersLoseNothing(t *testing.T) {
	if !*fixed {
		t.Skip("make cluster has it, which is a line of make test: it wants the machine for itself")
	}
	y := startPeers(t, network(t, size))
	y.refuseStrangers(t)
	r := y.begin(t, "orders")
	faults := []fault{killLeader(), freezeNode(0, 4*time.Second), nodeAlone(1, time.Minute), loseFolder(2), killAllNodes()}
	if y.network != nil {
		faults = append(faults, cutNode(1, 6*time.Second))
	}
	for _, f := range faults {
		r.endure(t, f)
		y.whole(t) // else the next may leave one node alone with all data
	}
	r.end(t)
	testkit.That(t, r.raised > 0, "no cursor has passed from an epoch to a higher one: this proves nothing")
	y.roll(t, rollNodes())
	testkit.Equal(t, len(y.scrub(t)), 0, "findings of a scrub: no disk was full")
}

// loseFolder kills a node, which comes back with nothing. Meanwhile the two others go on, are killed both,
// and go on again; one is killed once more, and the one that is alone says that it is not ready and whom it
// misses, and goes on by itself when the other is back.
func loseFolder(lost int) fault {
	f := killNode(lost)
	f.name, f.lasts = fmt.Sprintf("node %d has lost everything, and the others were killed", lost), 0
	f.until = func(t testing.TB, r *trial) {
		y := r.yard
		one, other := y.nodes[(lost+1)%size], y.nodes[(lost+2)%size]
		r.load.goesOn(t, "with two of three")
		one.end(t, "KILL")
		other.end(t, "KILL")
		y.startSome(t, one, other)
		r.load.goesOn(t, "with two that were killed")
		other.end(t, "KILL")
		one.saysNotReady(t, other.name, y.nodes[lost].name)
		y.startSome(t, other)
		eventually(t, one.name+" does not become ready after it was alone", one.ready)
		r.load.goesOn(t, "with two again")
		y.settled(t, one, other)
		testkit.Must(t, y.nodes[lost].program.Empty("data"))
	}
	f.end = func(t testing.TB, y *yard) {
		y.startAll(t)
		y.whole(t)
	}
	return f
}

// saysNotReady waits until the node tells balancers that it is not ready, and people, in its log, why.
func (n *node) saysNotReady(t testing.TB, words ...string) {
	t.Helper()
	before := len(n.program.Printed())
	eventually(t, fmt.Sprintf("%s does not say of %q that it is not ready", n.name, words), func() bool {
		response, err := http.Get("http://" + n.http + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable {
			return false
		}
		for line := range strings.Lines(n.program.Printed()[before:]) {
			if strings.Contains(line, `msg="not ready"`) && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
				return true
			}
		}
		return false
	})
}

// refuseStrangers: who has no certificate of the yard is told nothing at the address where peers listen to
// each other, with or without TLS.
func (y *yard) refuseStrangers(t testing.TB) {
	t.Helper()
	for _, n := range y.nodes {
		for _, secure := range []bool{true, false} {
			conn := testkit.Value(net.Dial("tcp", n.route))(t)
			testkit.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			if secure {
				conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
			}
			_, err := io.WriteString(conn, "CONNECT {\"verbose\":false}\r\nPING\r\n")
			answer, readErr := io.ReadAll(conn)
			testkit.That(t, !strings.Contains(string(answer), "INFO") && !strings.Contains(string(answer), "PONG"),
				"%s answers %q (TLS %v, %v, %v)", n.name, answer, secure, err, readErr)
			_ = conn.Close() // the server has closed it before
		}
	}
}
