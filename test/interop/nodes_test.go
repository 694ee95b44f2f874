//go:build linux

package interop

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
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
	storage := startServers(t, size)
	fronts := make(map[string]*parts.Balancer)
	own := make(map[string]string)
	for listener, address := range l.listeners() {
		fronts[listener], own[listener] = parts.NewBalancer(t, address), "127.0.0.1:0"
	}
	if l.outside {
		own["https"] = "0.0.0.0:0" // or nodes would ask nobody for a key
	}
	var nodes []*yard
	for i := range size {
		nodes = append(nodes, l.run(t, storage(i)+fmt.Sprintf("\npublicUrl: %q", "http://"+fronts["http"].Address()), own))
	}
	y := &yard{process: nodes[0].process, addresses: make(map[string]string), ca: filepath.Join(t.TempDir(), "ca.pem")}
	for _, n := range nodes {
		n.await(t)
	}
	y.behind = nodes[:2]
	for listener, front := range fronts {
		front.Serve(y.behind[0].hostPort(t, listener), y.behind[1].hostPort(t, listener))
		y.addresses[listener] = front.Address()
	}
	y.do(t, "cert", "export", y.ca)
	return y
}

// startServers starts NATS servers, and gives the lines by which node i of a yard keeps everything there.
func startServers(t *testing.T, size int) (storage func(i int) string) {
	t.Helper()
	servers := natstest.Start(t, size)
	key := filepath.Join(t.TempDir(), "secret.key")
	testkit.Must(t, os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	return func(i int) string {
		return fmt.Sprintf("engine: %q\nyard: interop\nnode: node%d\nsecrets: {keyFile: %q}", servers.URL(), i, key)
	}
}
