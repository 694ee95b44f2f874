package broker

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/natswire"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/entries"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// newNATSNodes gives brokers that know each other by a real server: entries and requests go over it,
// events stay here.
func newNATSNodes(t *testing.T, size int) (brokers []*Broker) {
	t.Helper()
	servers, name := natstest.Shared(t, 1), natstest.Yard()
	engines := logtest.NewNodes(newYard(t).Engine)
	for i := range size {
		conn := servers.Dial(t, 0)
		store := testkit.Value(entries.New(conn, entries.Config{Yard: name, Replicas: servers.Replicas, Buckets: 2, Log: testkit.Quiet()}))(t)
		testkit.Run(t, store.Run)
		testkit.Must(t, store.Load(t.Context()))
		wire := testkit.Value(natswire.New(conn, name))(t)
		nodes := testkit.Value(cluster.New(cluster.Config{Store: store, Wire: wire, ID: fmt.Sprint("n", i), Log: testkit.Quiet()}))(t)
		testkit.Must(t, nodes.Join(t.Context()))
		testkit.Run(t, nodes.Run)
		b := open(t, Config{Engine: engines.Node(), Meta: store, Nodes: nodes})
		testkit.Run(t, b.Run)
		brokers = append(brokers, b)
	}
	return brokers
}

// H5, C4: over a real server, too, whoever takes a slot is alone when it begins.
func TestTakeOverBetweenNodesOverNATS(t *testing.T) {
	brokers := newNATSNodes(t, 3)
	mustCreate(t, brokers[0], "orders", 1)
	var took []time.Duration
	last := mustReceive(t, brokers[2], DefaultGroup, "first", new(int64(0)))
	for i := range 40 {
		began := time.Now()
		next := mustReceive(t, brokers[i%3], DefaultGroup, fmt.Sprint(i), new(int64(i)))
		took = append(took, time.Since(began))
		if got := last.evictions(); len(got) != 1 || got[0].NewName != fmt.Sprint(i) {
			t.Fatalf("%d has the slot, and the one before was told %v", i, got)
		}
		if !next.Ready(nil) {
			t.Fatal("it is paused")
		}
		last = next
	}
	slices.Sort(took)
	t.Logf("take-over: median %v, longest %v", took[len(took)/2], took[len(took)-1])

	// Of many who come at once one stays.
	var coming sync.WaitGroup
	readers := make([]*reader, 12)
	for i := range readers {
		coming.Go(func() { readers[i], _ = receive(t, brokers[i%3], DefaultGroup, "", new(int64(100))) })
	}
	coming.Wait()
	staying := 0
	for _, r := range readers {
		if r != nil && len(r.evictions()) == 0 {
			staying++
		}
	}
	testkit.Equal(t, staying, 1, "stay")
	testkit.Equal(t, len(last.evictions()), 1, "the one before was told")
}

// C3: what is created through one node is used through another at once.
func TestCreateHereUseThereOverNATS(t *testing.T) {
	brokers := newNATSNodes(t, 2)
	for i := range 15 {
		here, there := brokers[i%2], brokers[1-i%2]
		name := fmt.Sprint("hub-", i)
		mustCreate(t, here, name, 1, "billing")
		testkit.Must(t, testkit.Err(there.LookUp(t.Context(), name)))
		testkit.Must(t, testkit.Err(there.Group(t.Context(), name, "billing")))
		mustPublish(t, there, name, Target{}, "x")
		testkit.Must(t, here.DeleteGroup(t.Context(), name, "billing"))
	}
}
