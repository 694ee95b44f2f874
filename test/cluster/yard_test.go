package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// size is how many nodes and servers there are.
const size = 3

// yard is three nodes on three servers.
type yard struct {
	servers *natstest.Servers
	nodes   []*node
	network *parts.Network // nil: all are at loopback addresses, and nothing can be cut
	key     string         // of the root policy
}

// node is a process of the yard.
type node struct {
	yard       *yard
	name       string
	amqp, http string // HOST:PORT
	program    *parts.Program
	host       *parts.Host // nil without a network
}

// start runs the servers and the nodes until the test ends.
func start(t testing.TB, network *parts.Network) *yard {
	t.Helper()
	y := &yard{network: network, key: auth.DevelopmentKey}
	if network == nil {
		y.servers = natstest.Start(t, size)
	} else {
		y.servers = natstest.StartOn(t, network.Host(0), network.Host(1), network.Host(2))
	}
	folder := t.TempDir()
	binary := build(t, folder)
	key := filepath.Join(folder, "secret.key")
	testkit.Must(t, os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	for i := range size {
		n := &node{yard: y, name: fmt.Sprintf("node%d", i)}
		address := parts.OwnLoopback()
		if network != nil {
			n.host = network.Host(size + i)
			address = n.host.Address
		}
		n.amqp, n.http = net.JoinHostPort(address, "5672"), net.JoinHostPort(address, "8080")
		dir := testkit.Value(os.MkdirTemp("", "eventyard-node-"))(t)
		args := []string{binary, "serve", "--engine", y.servers.URL(), "--yard", "test", "--node", n.name, "--secrets-key-file", key,
			"--amqp", n.amqp, "--http", n.http, "--amqps", "off", "--https", "off", "--allow-plaintext",
			"--grid-allow", y.address() + "/32", "--grid-probation-cap", "1s", "--grid-dead-delay", "1s"}
		if n.host != nil {
			args = n.host.Args(args...)
		}
		n.program = parts.NewProgram(dir, args...)
		t.Cleanup(func() {
			n.inspect(t)
			if t.Failed() {
				t.Logf("%s: %s", n.name, parts.Tail(telling(n.program.Printed()), 20_000))
			}
			testkit.Check(t, n.program.Remove())
		})
		y.nodes = append(y.nodes, n)
	}
	for _, n := range y.nodes {
		testkit.Must(t, n.start())
	}
	y.findKey(t)
	return y
}

// findKey reads the key that the first node has shown. At loopback addresses all know it.
func (y *yard) findKey(t testing.TB) {
	t.Helper()
	if y.network == nil {
		return
	}
	for _, n := range y.nodes {
		if found := shownKey.FindStringSubmatch(n.program.Printed()); found != nil {
			y.key = found[1]
			return
		}
	}
	t.Fatal("no node has shown a connection string")
}

var shownKey = regexp.MustCompile(`SharedAccessKey=([^;\s]+)`)

// address is that of the test process, as the nodes reach it.
func (y *yard) address() string {
	if y.network == nil {
		return "127.0.0.1"
	}
	return y.network.Address
}

// serve runs an HTTP server for the nodes until the test ends, and gives its URL.
func (y *yard) serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	testkit.Must(t, server.Listener.Close())
	server.Listener = testkit.Value(net.Listen("tcp", y.address()+":0"))(t)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// build makes the program, with the race detector where the test has it.
func build(t testing.TB, folder string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		parts.Missing(t, "the program cannot be built: %v", err)
	}
	binary := filepath.Join(folder, "eventyard")
	args := []string{"build", "-o", binary, "github.com/eventyard/eventyard/cmd/eventyard"}
	if raced {
		args = append([]string{"build", "-race"}, args[1:]...)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	testkit.Must(t, err, "%s", out)
	return binary
}

// start runs the node until it serves; one that runs is left alone.
func (n *node) start() error {
	return n.program.Start(func(string) bool {
		client := http.Client{Timeout: time.Second}
		response, err := client.Get("http://" + n.http + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// end ends the node by a signal, TERM or KILL.
func (n *node) end(t testing.TB, signal string) {
	t.Helper()
	n.inspect(t)
	testkit.Must(t, n.program.End(signal))
}

// wrong is what a node never prints.
var wrong = regexp.MustCompile(`(?m)^(panic|fatal error|WARNING: DATA RACE)`)

// inspect looks at what the node has printed since its last start; the next one has it begin anew.
func (n *node) inspect(t testing.TB) {
	t.Helper()
	printed := n.program.Printed()
	if at := wrong.FindStringIndex(printed); at != nil {
		t.Errorf("%s has printed %.8000s", n.name, printed[at[0]:])
	}
	testkit.That(t, !n.program.Died(), "%s has ended by itself", n.name)
}

// telling leaves out the lines that a node prints for each shard that comes or goes.
func telling(printed string) string {
	return routine.ReplaceAllString(printed, "")
}

var routine = regexp.MustCompile(`(?m)^.*msg="a partition is (ours|given up)" hub=yard-shards.*\n`)

// connection is the connection string of the node.
func (n *node) connection() string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		n.amqp, auth.RootPolicy, n.yard.key)
}

// admin is a client of the node's management API.
func (n *node) admin(t testing.TB) *admin.Client {
	t.Helper()
	client := testkit.Value(admin.New(admin.Config{Server: "http://" + n.http, Policy: auth.RootPolicy, Key: n.yard.key}))(t)
	t.Cleanup(client.Close)
	return client
}

// createHub makes a hub through the first node.
func (y *yard) createHub(t testing.TB, name string, partitions int) {
	t.Helper()
	client := y.nodes[0].admin(t)
	manage(t, "create hub "+name, func(ctx context.Context) error {
		_, err := client.CreateHub(ctx, admin.HubRequest{Name: name, Partitions: &partitions})
		return err
	})
}

// createTopic makes a topic through the first node, and waits until all nodes know of it.
func (y *yard) createTopic(t testing.TB, topic admin.TopicRequest) {
	t.Helper()
	client := y.nodes[0].admin(t)
	manage(t, "create topic "+topic.Name, func(ctx context.Context) error {
		_, err := client.CreateTopic(ctx, topic)
		return err
	})
	for _, n := range y.nodes {
		client := n.admin(t)
		eventually(t, n.name+" does not hear of topic "+topic.Name, func() bool {
			return testkit.Err(client.Topic(t.Context(), topic.Name)) == nil
		})
	}
}

// createSubscription makes a subscription through the first node.
func (y *yard) createSubscription(t testing.TB, subscription admin.SubscriptionRequest) {
	t.Helper()
	client := y.nodes[0].admin(t)
	manage(t, "create subscription "+subscription.Name, func(ctx context.Context) error {
		_, err := client.CreateSubscription(ctx, subscription)
		return err
	})
}
