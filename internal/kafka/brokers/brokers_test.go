package brokers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is what the nodes of a test share.
type yard struct {
	entries *metatest.Memory
	network *clustertest.Network
}

func newYard() *yard { return &yard{metatest.NewMemory(), &clustertest.Network{}} }

// node is one of them, whose listeners serve.
type node struct {
	*Brokers
	nodes *cluster.Nodes
	// leave ends it politely, die as kill -9 does: its entry stays.
	leave, die func()
}

func (y *yard) start(t *testing.T, id string, at cluster.Endpoints) *node {
	t.Helper()
	store := metatest.NewFaulty(y.entries)
	nodes, stop := clustertest.Join(t, y.network, store, id)
	b := testkit.Value(Open(t.Context(), Config{Nodes: nodes, Store: store, Log: testkit.Quiet()}))(t)
	stopBrokers := testkit.Run(t, b.Run)
	nodes.Announce(at)
	leave := func() { stopBrokers(); stop() }
	return &node{b, nodes, leave, func() {
		store.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		leave()
	}}
}

func at(id string) cluster.Endpoints {
	return cluster.Endpoints{Kafka: id + ".example.com:9092", Kafkas: id + ".example.com:9093"}
}

// settled waits until all nodes have seen what the others announced.
func settled() { time.Sleep(2 * cluster.LookInterval); synctest.Wait() }

func show(nodes []Node) (all []string) {
	for _, n := range nodes {
		self := ""
		if n.Self {
			self = " self"
		}
		all = append(all, fmt.Sprintf("%d %s:%d%s", n.ID, n.Host, n.Port, self))
	}
	return all
}

// K1: all nodes know the same brokers, in the same order, by the addresses of the listener that is asked for; one that
// leaves is gone at once, one that dies when it is seen dead, and each has its number again when it comes back.
func TestBrokersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, b, c := y.start(t, "a", at("a")), y.start(t, "b", at("b")), y.start(t, "c", at("c"))
		settled()
		testkit.Slices(t, show(a.At(false)), []string{"1 a.example.com:9092 self", "2 b.example.com:9092", "3 c.example.com:9092"})
		testkit.Slices(t, show(b.At(true)), []string{"1 a.example.com:9093", "2 b.example.com:9093 self", "3 c.example.com:9093"})
		testkit.Slices(t, show(c.all()), []string{"1 :0", "2 :0", "3 :0 self"})

		a.leave()
		settled()
		testkit.Slices(t, show(b.At(false)), []string{"2 b.example.com:9092 self", "3 c.example.com:9092"}, "after one has left")
		d := y.start(t, "d", at("d"))
		settled()
		testkit.Slices(t, show(d.At(false)), []string{"2 b.example.com:9092", "3 c.example.com:9092", "4 d.example.com:9092 self"}, "a new one")

		c.die()
		testkit.Must(t, b.nodes.AwaitDeath(t.Context(), c.nodes.Self(), 0))
		testkit.Slices(t, show(b.At(false)), []string{"2 b.example.com:9092 self", "4 d.example.com:9092"}, "after one has died")

		a, c = y.start(t, "a", at("a2")), y.start(t, "c", at("c"))
		settled()
		for _, n := range []*node{a, b, c, d} {
			testkit.Equal(t, len(n.At(false)), 4, "brokers at node %s", n.nodes.Self().ID)
		}
		testkit.Equal(t, show(b.At(false))[0], "1 a2.example.com:9092", "one that came back elsewhere")
		testkit.Equal(t, show(b.At(false))[2], "3 c.example.com:9092", "one that came back after it died")
	})
}

// K2: a group belongs to one node, as all say, and when that is gone to another; the groups of the others stay.
func TestGroupsBelongToOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, b, c := y.start(t, "a", at("a")), y.start(t, "b", cluster.Endpoints{Kafka: "b:1"}), y.start(t, "c", cluster.Endpoints{Kafkas: "c:1"})
		settled()
		const groups = 300
		before := map[string]int32{}
		for i := range groups {
			group, here := fmt.Sprint("group-", i), 0
			for _, n := range []*node{a, b, c} {
				chosen := n.Coordinator(group)
				if chosen.Self {
					here++
				}
				testkit.MustEqual(t, chosen.ID, a.Coordinator(group).ID, "%s at %s", group, n.nodes.Self().ID)
			}
			testkit.MustEqual(t, here, 1, "nodes that take %s for theirs", group)
			before[group] = a.Coordinator(group).ID
		}
		c.leave()
		settled()
		moved := 0
		for group, id := range before {
			now := a.Coordinator(group).ID
			testkit.MustEqual(t, b.Coordinator(group).ID, now, "%s", group)
			testkit.MustThat(t, now != 3 && (id == 3 || now == id), "%s moved from %d to %d", group, id, now)
			if id != now {
				moved++
			}
		}
		testkit.That(t, moved > 0 && moved < groups/2, "%d of %d groups moved", moved, groups)
	})
}

// K1: a node whose listeners have stopped is led to no more, while it finishes what it has.
func TestANodeThatStopsServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, b := y.start(t, "a", at("a")), y.start(t, "b", at("b"))
		settled()
		testkit.Equal(t, len(a.At(true)), 2)
		b.nodes.Announce(cluster.Endpoints{})
		settled()
		testkit.Slices(t, show(a.At(true)), []string{"1 a.example.com:9093 self"})
		testkit.Equal(t, len(a.all()), 1, "nodes that serve")
	})
}

// K1: where a node has one listener only, clients of the other do not hear of it; what no client could connect to is
// left out; and nodes behind one address are one broker.
func TestBrokersOfAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a := y.start(t, "a", cluster.Endpoints{Kafka: "10.0.0.1:9092", Kafkas: "yard.example.com:9093"})
		b := y.start(t, "b", cluster.Endpoints{Kafka: "nowhere", Kafkas: "yard.example.com:9093"})
		y.start(t, "c", cluster.Endpoints{Kafka: "[fd00::3]:9092"})
		y.start(t, "d", cluster.Endpoints{Kafkas: "d.example.com:9093"})
		settled()
		testkit.Slices(t, show(a.At(false)), []string{"1 10.0.0.1:9092 self", "3 fd00::3:9092"})
		testkit.Slices(t, show(a.At(true)), []string{"1 yard.example.com:9093 self", "4 d.example.com:9093"})
		testkit.Slices(t, show(b.At(true)), []string{"1 yard.example.com:9093 self", "4 d.example.com:9093"}, "at another behind the same address")
		testkit.Equal(t, len(b.all()), 4, "nodes that serve")
	})
}

// K1: nodes that start at once, each with a view of its own and a store whose answers get lost, have different numbers.
func TestNodesThatTakeNumbersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		const size = 8
		numbers := make([]int32, size)
		var all sync.WaitGroup
		for i := range size {
			store := metatest.NewFaulty(metatest.NewLateNode(y.entries))
			nodes, _ := clustertest.Join(t, y.network, store, fmt.Sprint("node-", i))
			store.Inject(func(op metatest.Op) error {
				if op.Kind == metatest.OpSet && op.Under(prefix) && op.N%2 == 0 {
					return metatest.Unheard(meta.ErrUncertain)
				}
				return nil
			})
			all.Go(func() {
				b, err := Open(t.Context(), Config{Nodes: nodes, Store: store, Log: testkit.Quiet()})
				if testkit.Check(t, err); err == nil {
					numbers[i] = b.number(nodes.Self().ID)
				}
			})
		}
		all.Wait()
		seen := map[int32]bool{}
		for i, n := range numbers {
			testkit.That(t, n >= 1 && n <= size && !seen[n], "node %d has number %d of %v", i, n, numbers)
			seen[n] = true
		}
	})
}

// K1: a node that was forgotten while it was out of sight takes a number anew, and nobody sees two of one number.
func TestANodeThatWasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, b := y.start(t, "a", at("a")), y.start(t, "b", at("b"))
		settled()
		entry := testkit.Value(y.entries.Get(t.Context(), numbersKey))(t)
		testkit.Must(t, testkit.Err(y.entries.CompareAndSet(t.Context(), numbersKey, entry.Revision,
			encodeNumbers(numbers{Joins: 2, Nodes: []numbered{{1, "another", 2}, {2, "b", 1}}}))))
		settled()
		for _, n := range []*node{a, b} {
			testkit.Equal(t, len(n.At(false)), 2, "brokers at %s", n.nodes.Self().ID)
			testkit.Equal(t, n.number("a"), int32(3), "the number of who was forgotten, at %s", n.nodes.Self().ID)
		}
	})
}

// K1: a node that cannot reach the store does not start without a number; Open fails with the store's error.
func TestNoNumberWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		nodes, _ := clustertest.Join(t, y.network, y.entries, "a")
		store := metatest.NewFaulty(y.entries)
		store.Inject(func(metatest.Op) error { return meta.ErrUnavailable })
		testkit.ErrorIs(t, testkit.Err(Open(t.Context(), Config{Nodes: nodes, Store: store, Log: testkit.Quiet()})), meta.ErrUnavailable)
	})
}

// A yard on one machine has no entry, and knows no brokers but itself.
func TestAlone(t *testing.T) {
	b := testkit.Value(Open(t.Context(), Config{Nodes: cluster.Alone("a"), Log: testkit.Quiet()}))(t)
	testkit.Equal(t, len(b.At(false))+len(b.At(true)), 0, "brokers")
	testkit.Equal(t, b.Coordinator("any"), Node{ID: Alone, Self: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Must(t, b.Run(ctx))
}

// Each Run ends with its context, whatever is under way.
func TestStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		nodes, _ := clustertest.Join(t, y.network, y.entries, "a")
		b := testkit.Value(Open(t.Context(), Config{Nodes: nodes, Store: y.entries, Log: testkit.Quiet()}))(t)
		for range 20 {
			testkit.Run(t, b.Run)()
		}
	})
}
