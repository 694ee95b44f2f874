package local

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C4: a reader with an epoch gets nothing while its node cannot show the others that it lives, be it
// here or over AMQP, also nothing that was fetched before. It goes on when the node is back, with
// nothing left out, or is evicted.
func TestReadersArePaused(t *testing.T) {
	for _, robbed := range []bool{false, true} {
		for name, way := range map[string]func(*yard) functions.Namespace{
			"here":      func(y *yard) functions.Namespace { return y.local },
			"over AMQP": func(y *yard) functions.Namespace { return y.dialed },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { pauseReaders(t, way, robbed) })
			})
		}
	}
}

func pauseReaders(t *testing.T, way func(*yard) functions.Namespace, robbed bool) {
	hubs := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 20, Sync: disk.OS})
	network := &clustertest.Network{}
	nodes, _ := clustertest.Join(t, network, hubs.Meta, "a")
	b := hubs.Member(t, nodes)
	testkit.Run(t, b.Run)
	y := openYardOf(t, hubs, b)
	y.dial()
	var cut atomic.Bool
	hubs.Meta.Inject(func(metatest.Op) error {
		if cut.Load() {
			return meta.ErrUnavailable
		}
		return nil
	})
	r := y.open(way(y), hub.ReadConfig{Partition: "0", Epoch: hub.Exclusive(1)})
	plain := y.open(way(y), hub.ReadConfig{Partition: "1"})
	y.texts("0", "a")
	y.texts("1", "a")
	read(t, r, 1)
	read(t, plain, 1)

	cut.Store(true)
	time.Sleep(cluster.QuietAfter + time.Second)
	y.texts("0", "b", "c")
	y.texts("1", "b")
	if got := read(t, plain, 1); string(got[0].Body) != "b" {
		t.Errorf("without an epoch it reads %q", got[0].Body)
	}
	patience, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err := r.Next(patience, nil, 1); len(got) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it reads %d events, %v", len(got), err)
	}
	if robbed {
		other, _ := clustertest.Join(t, network, hubs.Memory, "b")
		rival := testkit.Value(broker.Open(t.Context(), broker.Config{Engine: hubs.Engine, Meta: hubs.Memory, Nodes: other, Log: testkit.Quiet()}))(t)
		time.Sleep(cluster.DeadAfter + 2*cluster.LookInterval)
		seat := testkit.Value(rival.Receive(t.Context(), broker.ReceiverConfig{Hub: "orders", Group: broker.DefaultGroup, Partition: "0", Epoch: new(int64(1))}))(t)
		defer seat.Cursor.Close()
		defer seat.Close()
	}
	cut.Store(false)
	if robbed {
		_, err := r.Next(t.Context(), nil, 1)
		testkit.Equal(t, kind(err), hub.ErrEvicted, "it ends")
		return
	}
	got := make([]string, 0, 2)
	for _, ev := range read(t, r, 2) {
		got = append(got, string(ev.Body))
	}
	testkit.Slices(t, got, []string{"b", "c"}, "it goes on with")
}
