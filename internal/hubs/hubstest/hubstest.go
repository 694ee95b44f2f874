// Package hubstest gives tests a broker on storage in memory, for services and listeners that stand
// on hubs. Storage fails when it is told to; see storagetest.
//
//	y := hubstest.Open(t, storagetest.Config{})
//	y.Hub(t, "orders", 4, "billing")
//	y.Publish(t, "orders", "0", "a", "b")
//	y.Meta.Inject(…)
//	other := y.Node(t)   // a second broker on the same storage
//
// The tests of package broker itself cannot import it; they take storagetest.
package hubstest

import (
	"testing"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Namespace is that of all brokers here.
const Namespace = "yard"

// Yard is storage with a broker on it.
type Yard struct {
	*storagetest.Storage
	Broker *broker.Broker
}

// Open opens a yard until the test ends. What cfg leaves out is for tests; see storagetest.Open.
func Open(t testing.TB, cfg storagetest.Config) *Yard {
	t.Helper()
	y := &Yard{Storage: storagetest.Open(t, cfg)}
	y.Broker = y.Node(t)
	return y
}

// Node opens another broker on the yard's storage.
func (y *Yard) Node(t testing.TB) *broker.Broker {
	t.Helper()
	return y.Member(t, nil)
}

// Member opens another broker as one of several nodes.
func (y *Yard) Member(t testing.TB, nodes *cluster.Nodes) *broker.Broker {
	t.Helper()
	b, err := broker.Open(t.Context(), broker.Config{
		Engine: y.Engine, Meta: y.Meta, Nodes: nodes, Namespace: Namespace, Translators: record.Translators(), Log: testkit.Quiet(),
	})
	testkit.Must(t, err)
	return b
}

// Hub makes a hub with consumer groups, unless it is there.
func (y *Yard) Hub(t testing.TB, name string, partitions int, groups ...string) broker.Hub {
	t.Helper()
	h, err := y.Broker.EnsureHub(t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, groups)
	testkit.Must(t, err)
	return h
}

// Publish stores an event for each message in a partition of a hub.
func (y *Yard) Publish(t testing.TB, hub, partition string, messages ...string) broker.Published {
	t.Helper()
	p, err := y.Broker.Publish(t.Context(), hub, broker.Target{Partition: partition}, storagetest.Events(messages...))
	testkit.Must(t, err)
	return p
}

// Read gives the messages that a partition of a hub holds.
func (y *Yard) Read(t testing.TB, hub, partition string) []string {
	t.Helper()
	c, err := y.Broker.Cursor(t.Context(), hub, broker.DefaultGroup, partition, eventlog.Earliest())
	testkit.Must(t, err)
	return storagetest.ReadAll(t, c)
}
