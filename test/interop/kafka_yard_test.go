//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// kafkaYard is a yard for Kafka clients that is killed and comes back where it was. With INTEROP_YARD=cluster it is three
// nodes on three NATS servers, of which one at a time is killed, each in turn.
type kafkaYard struct {
	nodes []*yard
	start func(i int) *yard
	// at is where each node has its Kafka listener, also after a restart, and advertised where clients are sent: the same,
	// unless something is in between.
	at, advertised []string
	kills          int
}

// kafkaBehind puts something in front of a node's Kafka listener, and says where that is. It is called before the node starts.
type kafkaBehind func(i int, at string) (advertised string)

// startKafkaYard starts it, and stops it with the test unless that has. Clients are led behind what is in front of nodes, if
// anything is.
func startKafkaYard(t *testing.T, l layout, front kafkaBehind) *kafkaYard {
	t.Helper()
	l.kafka, l.build = true, checkedBuild
	size, storage := 1, func(int) string { return "" }
	if wantsNodes() {
		size = 3
		storage = startServers(t, size)
	} else {
		data := "data: " + t.TempDir()
		storage = func(int) string { return data }
	}
	y := &kafkaYard{nodes: make([]*yard, size)}
	for i := range size {
		at := "127.0.0.1:" + ownPort(t)
		y.at = append(y.at, at)
		if front != nil {
			at = front(i, at)
		}
		y.advertised = append(y.advertised, at)
	}
	y.start = func(i int) *yard {
		own, listeners := l, l.listeners()
		listeners["kafka"] = y.at[i]
		if y.advertised[i] != y.at[i] {
			own.settings = append(slices.Clone(l.settings), fmt.Sprintf("kafkaAdvertise: %q", y.advertised[i]))
		}
		return own.launch(t, storage(i), listeners)
	}
	for i := range size {
		y.nodes[i] = y.start(i)
	}
	for _, n := range y.nodes {
		n.await(t)
	}
	t.Cleanup(func() {
		for i, n := range y.nodes {
			if t.Failed() {
				t.Logf("node %d said last:\n%s", i, parts.Tail(n.out.String(), 8000))
			}
		}
	})
	y.awaitBrokers(t)
	return y
}

// address is where clients begin.
func (y *kafkaYard) address() string { return strings.Join(y.advertised, ",") }

// patience bounds what clients do with it on a slow machine. Those of several nodes wait for others to take over, too.
func (y *kafkaYard) patience() time.Duration { return kafkaTime * time.Duration(2*len(y.nodes)-1) }

// one is a node that runs.
func (y *kafkaYard) one() *yard { return y.nodes[len(y.nodes)-1] }

// kill kills a node, the next in turn, and starts it again; see killNode.
func (y *kafkaYard) kill(t *testing.T) {
	t.Helper()
	y.killNode(t, y.kills%len(y.nodes))
}

// A node coordinates groups and transactional ids.
const (
	ofGroup       = int8(0)
	ofTransaction = int8(1)
)

// killCoordinator is kill for the node that coordinates a group or a transactional id.
func (y *kafkaYard) killCoordinator(t *testing.T, kind int8, key string) {
	t.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKeys = kind, []string{key}
	client := kafkaTask{address: y.address()}.franz(t)
	found := testkit.Value(find.RequestWith(t.Context(), client))(t)
	client.Close()
	testkit.MustEqual(t, len(found.Coordinators), 1, "coordinators of %s", key)
	c := found.Coordinators[0]
	i := slices.Index(y.advertised, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	testkit.MustThat(t, i >= 0, "the coordinator of %s is at %s:%d (code %d), the nodes are at %v", key, c.Host, c.Port, c.ErrorCode, y.advertised)
	y.killNode(t, i)
}

// killNode kills a node and starts it again. Where there are several that is at once, or when the others do its work and no
// longer name it: the one and the other in turn.
func (y *kafkaYard) killNode(t *testing.T, i int) {
	t.Helper()
	y.nodes[i].kill()
	if len(y.nodes) > 1 && y.kills%2 == 0 {
		y.awaitBrokers(t, i)
	}
	y.kills++
	y.nodes[i] = y.start(i)
	y.nodes[i].await(t)
}

// awaitBrokers waits until clients of every node are told of all nodes but those that are dead, and gives what they are told.
func (y *kafkaYard) awaitBrokers(t *testing.T, dead ...int) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaTime)
	defer cancel()
	var want, asked []string
	for i := range y.nodes {
		if !slices.Contains(dead, i) {
			want, asked = append(want, y.advertised[i]), append(asked, y.at[i])
		}
	}
	slices.Sort(want)
	for _, at := range asked {
		client := kafkaTask{address: at}.franz(t)
		testkit.Eventually(t, "clients of "+at+" hear of "+strings.Join(want, ", "), func() bool {
			asking, done := context.WithTimeout(ctx, 10*time.Second)
			defer done()
			all = kafkaBrokers(asking, client.SeedBrokers()[0])
			return slices.EqualFunc(all, want, func(got, address string) bool { return strings.HasPrefix(got, address+" ") })
		})
		client.Close()
	}
	return all
}

// stop stops all nodes, and looks at what they leave behind.
func (y *kafkaYard) stop(t *testing.T) {
	t.Helper()
	for _, n := range y.nodes {
		n.stop(t)
	}
}
