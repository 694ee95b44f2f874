package storage

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7, R5: a yard on servers is filled with what the guide allows there. No node starts before it is whole,
// what was interrupted is begun anew, secrets are sealed with the new key, and what is there is not
// touched.
func TestRestoreToServers(t *testing.T) {
	oldKey, entry, id := sealedEntry(t)
	url, key := limited(t, advised(t)), sealed.NewKey()
	cfg, what := onServers(key), Restored{SecretKeys: []string{id}, Revision: entry.Revision}
	testkit.ErrorIs(t, testkit.Err(Restore(t.Context(), url, cfg, what)), ErrNoKey)
	both := onServers(key + "\n" + oldKey)
	fill := func() *Restoring {
		t.Helper()
		r, err := Restore(t.Context(), url, both, what)
		testkit.Must(t, err)
		stored, wanted, err := r.Entry(entry)
		testkit.Must(t, err)
		sealedWith, _ := sealed.KeyOf(stored.Value)
		testkit.That(t, wanted && sealedWith != id, "it is sealed with %s", sealedWith)
		testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), entry.Key, 0, stored.Value)))
		testkit.Equal(t, string(testkit.Value(r.Opened().Get(t.Context(), entry.Key))(t).Value), "hunter2", "the secret")
		testkit.Must(t, r.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 1}))
		p := testkit.Value(r.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
		testkit.Must(t, p.(eventlog.Importer).BeginAt(t.Context(), 40, time.UnixMilli(5)))
		return r
	}
	interrupted := fill()
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url, cfg)), ErrRestoring, "a node starts while it is filled")
	testkit.Must(t, interrupted.Close())
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url, cfg)), ErrRestoring, "a node starts after it was interrupted")
	whole := fill()
	testkit.Must(t, whole.Finish(t.Context()))
	testkit.Must(t, whole.Close(), "once more")

	for range 2 {
		s, err := Open(t.Context(), url, cfg) // with the new key alone
		testkit.Must(t, err)
		testkit.Equal(t, string(testkit.Value(s.Meta.Get(t.Context(), entry.Key))(t).Value), "hunter2", "the secret")
		testkit.ErrorIs(t, testkit.Err(s.Meta.Get(t.Context(), restoringKey)), meta.ErrNotFound)
		p := testkit.Value(s.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
		testkit.Equal(t, testkit.Value(p.Sealed(t.Context()))(t).Next, 40, "the next number")
		testkit.Must(t, s.Close())
		testkit.ErrorIs(t, testkit.Err(Restore(t.Context(), url, both, what)), ErrYardOccupied)
	}
	other := cfg
	other.MustExist = true
	testkit.ErrorIs(t, testkit.Err(Open(t.Context(), url+"2", other)), ErrNoYard)
}

// C7: who waits for another that fills the yard, to begin anew, leaves alone what that one has finished
// meanwhile.
func TestRestoreBesideOneThatFinishes(t *testing.T) {
	_, entry, _ := sealedEntry(t)
	cfg := onServers(sealed.NewKey())
	url := natstest.Shared(t, 1).URL() + "?replicas=1&yard=" + natstest.Yard()
	first := testkit.Value(Restore(t.Context(), url, cfg, Restored{Revision: entry.Revision}))(t)
	settings := testkit.Value(connect.Parse(url))(t)
	second := &fillingYard{natsNode: newNATSNode(settings, cfg)}
	defer func() { testkit.Check(t, second.end()) }()
	testkit.Must(t, second.dial(t.Context()))
	found := testkit.Value(second.left(t.Context()))(t)
	testkit.MustEqual(t, found.mark.Key, restoringKey, "what the second finds")
	testkit.Must(t, testkit.Err(first.Meta.CompareAndSet(t.Context(), "hubs/orders", 0, []byte("{}"))))
	testkit.Must(t, first.Finish(t.Context()))
	testkit.ErrorIs(t, second.remove(t.Context(), found), ErrRestoring)
	s := testkit.Value(Open(t.Context(), url, cfg))(t)
	testkit.Must(t, testkit.Err(s.Meta.Get(t.Context(), "hubs/orders")), "what the first has filled")
	testkit.Must(t, s.Close())
}

// C7: of a node that starts and one who fills the same empty yard at the same time, both may give way, and
// never none.
func TestRestoreBesideANodeThatStarts(t *testing.T) {
	_, entry, _ := sealedEntry(t)
	cfg := onServers(sealed.NewKey())
	for range 5 {
		url := natstest.Shared(t, 1).URL() + "?replicas=1&yard=" + natstest.Yard()
		started := make(chan error, 1)
		go func() {
			s, err := Open(t.Context(), url, cfg)
			if err == nil {
				err = s.Close()
			}
			started <- err
		}()
		r, err := Restore(t.Context(), url, cfg, Restored{Revision: entry.Revision})
		other := <-started
		testkit.That(t, err != nil || other != nil, "a node has started on a yard that is filled")
		if err == nil {
			testkit.Must(t, r.Close())
		}
	}
}
