package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// size is how many nodes there are, and servers unless a test has more.
const size = 3

// yard is three nodes on three or five servers, which run by themselves, or on three inside the nodes.
type yard struct {
	name           string            // at the servers
	servers        *natstest.Servers // nil: they are inside the nodes
	binary, secret string            // files: the program, and the yard's secret key; empty where servers are inside
	bundle         string            // the file of a node without a server, where they are
	nodes          []*node
	network        *parts.Network // nil: all are at loopback addresses, and nothing can be cut
	key            string         // of the root policy
	balancer       string         // HOST:PORT of one before all nodes, for processors; empty: each has a node of its own
}

// node is a process of the yard.
type node struct {
	yard       *yard
	name       string
	amqp, http string // HOST:PORT, where clients reach it
	route      string // where other peers reach the server inside; empty: there is none
	program    *parts.Program
	host       *parts.Host // nil without a network
}

// start runs servers and nodes at loopback addresses until the test ends.
func start(t testing.TB) *yard {
	t.Helper()
	return startWith(t, &yard{servers: natstest.Start(t, size)})
}

// network gives the fixed run one on which nodes and servers can be cut off; nil where there can be none.
func network(t testing.TB, hosts int) *parts.Network {
	t.Helper()
	if *proxied {
		return parts.NewProxies(t, hosts)
	}
	return parts.AnyNetwork(t, hosts)
}

// startOn runs them on a network, whose first hosts are the servers; where there is none at loopback addresses.
func startOn(t testing.TB, network *parts.Network, servers int) *yard {
	t.Helper()
	if network == nil {
		return startWith(t, &yard{servers: natstest.Start(t, servers)})
	}
	var hosts []*parts.Host
	for i := range servers {
		hosts = append(hosts, network.Host(i))
	}
	return startWith(t, &yard{network: network, servers: natstest.StartOn(t, hosts...)})
}

// startWith runs the nodes of a yard that has its servers.
func startWith(t testing.TB, y *yard) *yard {
	t.Helper()
	y.name, y.key = "test", auth.DevelopmentKey
	y.binary, y.secret = parts.Eventyard(t, raced), filepath.Join(t.TempDir(), "secret.key")
	testkit.Must(t, os.WriteFile(y.secret, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600))
	y.startNodes(t)
	y.findKey(t)
	return y
}

// startNodes runs the nodes on the servers until the test ends.
func (y *yard) startNodes(t testing.TB) {
	t.Helper()
	for i := range size {
		n := y.newNode(i, y.servers.Replicas+i)
		n.install(t, y.binary, "--engine", y.servers.URL(), "--yard", y.name, "--node", n.name, "--secrets-key-file", y.secret,
			"--replicas", strconv.Itoa(y.servers.Replicas))
	}
	y.startAll(t)
}

// newNode is a node at the address of a host of the network, or at one of loopback.
func (y *yard) newNode(i, host int) *node {
	n := &node{yard: y, name: fmt.Sprintf("node%d", i)}
	address := parts.OwnLoopback()
	if y.network != nil {
		n.host = y.network.Host(host)
		address = n.host.Address
	}
	n.amqp, n.http = net.JoinHostPort(address, "5672"), net.JoinHostPort(address, "8080")
	y.nodes = append(y.nodes, n)
	return n
}

// install says how the node is run, in a folder of its own that goes when the test ends.
func (n *node) install(t testing.TB, binary string, storage ...string) {
	t.Helper()
	args := append([]string{binary, "serve", "--amqp", n.listen(t, n.amqp), "--http", n.listen(t, n.http), "--amqps", "off", "--kafka", "off", "--kafkas", "off", "--https", "off", "--allow-plaintext",
		"--grid-allow", n.yard.address() + "/32", "--grid-probation-cap", "1s", "--grid-dead-delay", "1s"}, storage...)
	n.program = n.host.Program(testkit.Value(os.MkdirTemp("", "eventyard-node-"))(t), args...)
	t.Cleanup(func() {
		n.inspect(t)
		if t.Failed() {
			t.Logf("%s: %s", n.name, parts.Tail(telling(n.program.Printed()), 20_000))
		}
		testkit.Check(t, n.program.Remove())
	})
}

// listen is where the node has to listen to be reached at an address of its own.
func (n *node) listen(t testing.TB, address string) string {
	t.Helper()
	if n.host == nil {
		return address
	}
	_, port, err := net.SplitHostPort(address)
	testkit.Must(t, err)
	return testkit.Value(n.host.Listen(port))(t)
}

// startAll starts the nodes that do not run, at once: those with servers inside wait for each other.
func (y *yard) startAll(t testing.TB) {
	t.Helper()
	y.startSome(t, y.nodes...)
}

func (y *yard) startSome(t testing.TB, nodes ...*node) {
	t.Helper()
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = n.start() })
	}
	all.Wait()
	testkit.Must(t, errors.Join(errs...))
}

// findKey reads the key that one of the nodes shows. At loopback addresses all know it.
func (y *yard) findKey(t testing.TB) {
	t.Helper()
	if y.network == nil || y.network.Loopback() {
		return
	}
	eventually(t, "no node shows a connection string", func() bool {
		for _, n := range y.nodes {
			if found := shownKey.FindStringSubmatch(n.program.Printed()); found != nil {
				y.key = found[1]
				return true
			}
		}
		return false
	})
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
	t.Cleanup(server.Close)
	if y.network == nil {
		server.Start()
		return server.URL
	}
	testkit.Must(t, server.Listener.Close())
	listener, address, err := y.network.Serve()
	testkit.Must(t, err)
	server.Listener = listener
	server.Start()
	return "http://" + address
}

// start runs the node until it serves; one that runs is left alone.
func (n *node) start() error {
	if err := n.program.Start(func(string) bool { return true }); err != nil {
		return err
	}
	for late := time.Now().Add(patience); !n.ready(); time.Sleep(10 * time.Millisecond) {
		if n.program.Died() || time.Now().After(late) {
			return fmt.Errorf("%s does not become ready", n.name)
		}
	}
	return nil
}

func (n *node) ready() bool {
	client := http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + n.http + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// end ends the node by a signal, TERM or KILL.
func (n *node) end(t testing.TB, signal string) {
	t.Helper()
	n.inspect(t)
	testkit.Must(t, n.program.End(signal))
}

// endsByItself waits until the node has ended as it should.
func (n *node) endsByItself(t testing.TB) {
	t.Helper()
	eventually(t, n.name+" does not end by itself", n.program.Died)
	n.inspectPrinted(t)
	testkit.Must(t, n.program.End("KILL")) // nothing is left to end
}

// wrong is what a node never prints.
var wrong = regexp.MustCompile(`(?m)^(panic|fatal error|WARNING: DATA RACE)`)

// inspect looks at what the node has printed since its last start; the next one has it begin anew.
func (n *node) inspect(t testing.TB) {
	t.Helper()
	n.inspectPrinted(t)
	testkit.That(t, !n.program.Died(), "%s has ended by itself", n.name)
}

func (n *node) inspectPrinted(t testing.TB) {
	t.Helper()
	printed := n.program.Printed()
	if at := wrong.FindStringIndex(printed); at != nil {
		t.Errorf("%s has printed %.8000s", n.name, printed[at[0]:])
	}
}

// telling leaves out the lines that a node prints for each shard that comes or goes.
func telling(printed string) string {
	return routine.ReplaceAllString(printed, "")
}

var routine = regexp.MustCompile(`(?m)^.*msg="a partition is (ours|given up)" hub=yard-shards.*\n`)

// connection is the connection string of the node.
func (n *node) connection() string { return n.yard.connection(n.amqp) }

// connection is the connection string of nodes that are reached at HOST:PORT.
func (y *yard) connection(address string) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true", address, auth.RootPolicy, y.key)
}

// balance has processors that begin from now on reach the nodes through a balancer.
func (y *yard) balance(t testing.TB) {
	t.Helper()
	b := parts.NewBalancer(t, "127.0.0.1:0")
	var nodes []string
	for _, n := range y.nodes {
		nodes = append(nodes, n.amqp)
	}
	b.Serve(nodes...)
	y.balancer = b.Address()
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
