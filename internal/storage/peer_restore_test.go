package storage

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7, C8: a yard on servers inside the nodes is filled by one of them while the others lend theirs. No node
// starts before it is whole, what was interrupted is begun anew, secrets are sealed with the key of the
// bundles, and a yard that is there is not touched.
func TestRestoreToPeers(t *testing.T) {
	natstest.NeedsNoDetector(t)
	bundles := peers(t)
	var folders []string
	for range bundles {
		folders = append(folders, filepath.Join(t.TempDir(), "data"))
	}
	oldKey, entry, id := sealedEntry(t)
	what := Restored{SecretKeys: []string{id}, Revision: entry.Revision}
	testkit.ErrorIs(t, testkit.Err(Restore(t.Context(), PeerOf(folders[0]), asPeer(bundles[0]), what)), ErrNoKey)

	lend, stop := context.WithCancel(t.Context())
	defer stop()
	var lending, running sync.WaitGroup
	for i := range bundles[1:] {
		running.Add(1)
		lending.Go(func() {
			testkit.Check(t, LendPeer(lend, folders[i+1], asPeer(bundles[i+1]), running.Done), "lend the server of %s", bundles[i+1].Node)
		})
	}
	running.Wait()
	cfg := asPeer(bundles[0])
	cfg.SecretKey.Key = oldKey
	fill := func() *Restoring {
		t.Helper()
		r := testkit.Value(Restore(t.Context(), PeerOf(folders[0]), cfg, what))(t)
		stored, wanted, err := r.Entry(entry)
		testkit.Must(t, err)
		sealedWith, _ := sealed.KeyOf(stored.Value)
		testkit.That(t, wanted && sealedWith != id, "it is sealed with %s", sealedWith)
		testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), entry.Key, 0, stored.Value)))
		testkit.Must(t, r.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 1}))
		p := testkit.Value(r.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
		testkit.Must(t, p.(eventlog.Importer).BeginAt(t.Context(), 40, time.UnixMilli(5)))
		return r
	}
	testkit.Must(t, fill().Close())
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), PeerOf(folders[0]), asPeer(bundles[0]))), ErrRestoring, "a node starts after it was interrupted")
	whole := fill()
	testkit.Equal(t, whole.Replicas, 3, "replicas")
	testkit.Must(t, whole.Finish(t.Context()))
	testkit.ErrorIs(t, testkit.Err(Restore(t.Context(), PeerOf(folders[0]), cfg, what)), ErrYardOccupied)
	stop()
	lending.Wait()

	var starting sync.WaitGroup
	nodes := make([]*Storage, len(bundles))
	for i, b := range bundles {
		starting.Go(func() {
			var err error
			nodes[i], err = Open(t.Context(), PeerOf(folders[i]), asPeer(b))
			testkit.Check(t, err, "start %s", b.Node)
		})
	}
	starting.Wait()
	for _, s := range nodes {
		testkit.MustThat(t, s != nil, "a node has not started")
		testkit.Equal(t, string(testkit.Value(s.Meta.Get(t.Context(), entry.Key))(t).Value), "hunter2", "the secret")
		p := testkit.Value(s.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
		testkit.Equal(t, testkit.Value(p.Sealed(t.Context()))(t).Next, 40, "the next number")
	}
	var ending sync.WaitGroup
	for _, s := range nodes {
		ending.Go(func() { testkit.Check(t, s.Close()) })
	}
	ending.Wait()
}
