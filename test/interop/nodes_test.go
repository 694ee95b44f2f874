//go:build linux

package interop

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// nodesVariable makes every yard one of three nodes on three NATS servers if it is "cluster". It is a
// variable, since the copies of the test binary have to know it, too.
const nodesVariable = "INTEROP_YARD"

func wantsNodes() bool { return os.Getenv(nodesVariable) == "cluster" }

// onOneMachine skips a test that several nodes cannot pass, and says why.
func onOneMachine(t *testing.T, why string) {
	t.Helper()
	if wantsNodes() {
		t.Skip("not with several nodes: " + why)
	}
}

// startNodes starts three nodes on three NATS servers. Two of them are behind a balancer, which gives
// each the next connection in turn: so a client with two connections is at two nodes, and one that
// connects again at the other. The third has its part of what nodes share. // C1, C2, C3
func startNodes(t *testing.T, l layout) *yard {
	t.Helper()
	const size = 3
	servers := natstest.Start(t, size)
	key := filepath.Join(t.TempDir(), "secret.key")
	testkit.Must(t, os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	fronts := make(map[string]*balancer)
	own := make(map[string]string)
	for listener, address := range l.listeners() {
		fronts[listener], own[listener] = newBalancer(t, address), "127.0.0.1:0"
	}
	var nodes []*yard
	for i := range size {
		storage := fmt.Sprintf("engine: %q\nyard: interop\nnode: node%d\nsecrets: {keyFile: %q}\npublicUrl: %q",
			servers.URL(), i, key, "http://"+fronts["http"].address())
		nodes = append(nodes, l.run(t, storage, own))
	}
	y := &yard{process: nodes[0].process, addresses: make(map[string]string), ca: filepath.Join(t.TempDir(), "ca.pem")}
	for _, n := range nodes {
		n.await(t)
	}
	y.behind = nodes[:2]
	for listener, front := range fronts {
		front.serve(t, y.behind[0].hostPort(t, listener), y.behind[1].hostPort(t, listener))
		y.addresses[listener] = front.address()
	}
	y.do(t, "cert", "export", y.ca)
	return y
}

// balancer passes connections on to nodes in turn, without looking into them.
type balancer struct {
	listener net.Listener
	nodes    []string // HOST:PORT
	next     atomic.Int64

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]bool // guarded by mu; nil once it is closed
}

// newBalancer listens until the test ends; connections wait until it serves.
func newBalancer(t *testing.T, address string) *balancer {
	t.Helper()
	b := &balancer{listener: testkit.Value(net.Listen("tcp", address))(t), open: make(map[net.Conn]bool)}
	t.Cleanup(b.close)
	return b
}

func (b *balancer) address() string { return b.listener.Addr().String() }

// serve begins to pass connections on, until the balancer is closed.
func (b *balancer) serve(t *testing.T, nodes ...string) {
	t.Helper()
	b.nodes = nodes
	b.running.Go(func() {
		for {
			conn, err := b.listener.Accept()
			if err != nil {
				return
			}
			node := b.nodes[int(b.next.Add(1))%len(b.nodes)]
			b.running.Go(func() { b.pass(conn, node) })
		}
	})
}

// pass carries both directions until one side ends it; the other then sees the same end.
func (b *balancer) pass(client net.Conn, to string) {
	defer b.drop(client)
	node, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer b.drop(node)
	if !b.keep(client) || !b.keep(node) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { carry(node, client) })
	both.Go(func() { carry(client, node) })
	both.Wait()
}

// carry copies until the source ends, and tells the destination so; a source that fails ends both.
func carry(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		from.Close()
		to.Close()
		return
	}
	to.(*net.TCPConn).CloseWrite()
}

func (b *balancer) keep(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return false
	}
	b.open[conn] = true
	return true
}

func (b *balancer) drop(conn net.Conn) {
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, conn)
}

func (b *balancer) close() {
	b.listener.Close()
	b.mu.Lock()
	for conn := range b.open {
		conn.Close()
	}
	b.open = nil
	b.mu.Unlock()
	b.running.Wait()
}
