package storage

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
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
	second := newFillingYard(settings, cfg)
	defer func() { testkit.Check(t, second.end()) }()
	testkit.Must(t, second.dial(t.Context()))
	found := testkit.Value(second.left(t.Context()))(t)
	testkit.MustEqual(t, found.Key, restoringKey, "what the second finds")
	testkit.Must(t, testkit.Err(first.Meta.CompareAndSet(t.Context(), "hubs/orders", 0, []byte("{}"))))
	testkit.Must(t, first.Finish(t.Context()))
	testkit.ErrorIs(t, second.claim(t.Context(), found, "test", false), ErrRestoring)
	s := testkit.Value(Open(t.Context(), url, cfg))(t)
	testkit.Must(t, testkit.Err(s.Meta.Get(t.Context(), "hubs/orders")), "what the first has filled")
	testkit.Must(t, s.Close())
}

// C7: of three who fill the same yard at the same time one does, whatever is there of it. The others say
// so, and leave alone what it fills.
func TestThreeFillersAtOnce(t *testing.T) {
	cfg := onServers(sealed.NewKey())
	begin := func(url string) (*Restoring, error) { return Restore(t.Context(), url, cfg, Restored{}) }
	for name, before := range map[string]func(t *testing.T, url string){
		"an empty yard": func(*testing.T, string) {},
		"one that was left": func(t *testing.T, url string) {
			r := testkit.Value(begin(url))(t)
			testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), "hubs/left", 0, []byte("{}"))))
			testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), "records/left/checkpoint/0", 0, []byte("{}"))))
			testkit.Must(t, r.Log.Provide(t.Context(), "left", eventlog.Shape{Partitions: 1}))
			testkit.Must(t, r.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range *fillerRounds {
				url := natstest.Shared(t, 1).URL() + "?replicas=1&yard=" + natstest.Yard()
				before(t, url)
				var fillers [3]*Restoring
				var errs [3]error
				var all sync.WaitGroup
				for i := range fillers {
					all.Go(func() { fillers[i], errs[i] = begin(url) })
				}
				all.Wait()
				winner := slices.Index(errs[:], nil)
				testkit.MustThat(t, winner >= 0, "nobody fills it: %v", errs)
				for i, err := range errs {
					if i != winner {
						testkit.ErrorIs(t, err, ErrRestoring)
						testkit.That(t, err != nil && strings.Contains(err.Error(), "another process fills yard"), "it says %v", err)
					}
				}
				wantFilled(t, url, cfg, fillers[winner])
			}
		})
	}
}

// C7: a process that others have taken for dead, as after it was frozen, stops filling.
func TestWhoIsTakenForDeadStops(t *testing.T) {
	url := natstest.Shared(t, 1).URL() + "?replicas=1&yard=" + natstest.Yard()
	r := testkit.Value(Restore(t.Context(), url, onServers(sealed.NewKey()), Restored{}))(t)
	defer func() { testkit.Check(t, r.Close()) }()
	ctx, cancel := r.Under(t.Context())
	defer cancel()
	testkit.Must(t, ctx.Err())
	testkit.Eventually(t, "its hold to be taken away", func() bool { // it may be renewed meanwhile
		all := testkit.Value(r.Meta.List(t.Context(), holds.Prefix))(t)
		return len(all) == 1 && r.Meta.Delete(t.Context(), all[0].Key, all[0].Revision) == nil
	})
	<-ctx.Done()
	testkit.ErrorIs(t, context.Cause(ctx), ErrRestoring)
	ended, end := context.WithCancel(t.Context())
	ctx, cancel = (&Restoring{}).Under(ended) // of a folder nobody else is told
	defer cancel()
	end()
	<-ctx.Done()
	testkit.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

// C7: a process that could not say for so long that it lives that another may have its claim writes nothing
// more, also before it has heard of the other: it ends, and what it tries is not stored.
func TestWhoWasFrozenWritesNothingMore(t *testing.T) {
	servers := natstest.Start(t, 1)
	yard := natstest.Yard()
	r := testkit.Value(Restore(t.Context(), servers.URL()+"?replicas=1&yard="+yard, onServers(sealed.NewKey()), Restored{}))(t)
	defer func() { testkit.Check(t, r.Close()) }()
	testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), "hubs/before", 0, []byte("{}"))))
	ctx, cancel := r.Under(t.Context())
	defer cancel()
	servers.Freeze(t, 0) // to the process it is the same as if time had passed without it
	<-ctx.Done()
	testkit.ErrorIs(t, context.Cause(ctx), ErrRestoring)
	servers.Thaw(t, 0)
	soon, end := context.WithTimeout(t.Context(), 3*time.Second)
	defer end()
	testkit.That(t, testkit.Err(r.Meta.CompareAndSet(soon, "hubs/after", 0, []byte("{}"))) != nil, "it was stored")
	js := testkit.Value(jetstream.New(servers.Dial(t, 0)))(t)
	stream := testkit.Value(js.Stream(t.Context(), "Y_"+yard+"_e_d"))(t)
	testkit.Must(t, testkit.Err(stream.GetLastMsgForSubject(t.Context(), "y."+yard+".e.d.hubs.before")))
	testkit.ErrorIs(t, testkit.Err(stream.GetLastMsgForSubject(t.Context(), "y."+yard+".e.d.hubs.after")), jetstream.ErrMsgNotFound, "what it wrote later")
}

var fillerRounds = flag.Int("filler.rounds", 2, "how often three fill a yard at once")

// wantFilled has a yard filled, and wants nothing else there afterwards.
func wantFilled(t *testing.T, url string, cfg Config, r *Restoring) {
	t.Helper()
	testkit.Must(t, testkit.Err(r.Meta.CompareAndSet(t.Context(), "hubs/orders", 0, []byte("{}"))))
	testkit.Must(t, r.Log.Provide(t.Context(), "orders", eventlog.Shape{Partitions: 1}))
	p := testkit.Value(r.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
	testkit.Must(t, p.(eventlog.Importer).BeginAt(t.Context(), 40, time.UnixMilli(5)))
	testkit.Must(t, r.Finish(t.Context()))
	s := testkit.Value(Open(t.Context(), url, cfg))(t)
	defer func() { testkit.Check(t, s.Close()) }()
	var keys []string
	for _, e := range testkit.Value(s.Meta.List(t.Context(), ""))(t) {
		if !strings.HasPrefix(e.Key, "storage/") {
			keys = append(keys, e.Key)
		}
	}
	testkit.Slices(t, keys, []string{"hubs/orders", "logs/orders"}, "entries")
	p = testkit.Value(s.Log.Partition(eventlog.PartitionID{Log: "orders"}))(t)
	testkit.Equal(t, testkit.Value(p.Sealed(t.Context()))(t).Next, 40, "the next number")
}

// C7, C8: servers that cannot keep as many replicas as are wanted are named, and so are streams of an
// interrupted restore that have another number: nothing is kept by fewer in silence.
func TestRestoreToFewerReplicas(t *testing.T) {
	cfg := onServers(sealed.NewKey())
	yard := "?yard=" + natstest.Yard()
	wants := func(url string, want error, says string) {
		t.Helper()
		_, err := Restore(t.Context(), url, cfg, Restored{})
		testkit.ErrorIs(t, err, want)
		testkit.That(t, err != nil && strings.Contains(err.Error(), says), "it says %v", err)
	}
	wants(natstest.Shared(t, 1).URL()+yard, connect.ErrUnfit, "3 replicas cannot be kept")
	three := natstest.Shared(t, 3).URL() + yard
	testkit.Must(t, testkit.Value(Restore(t.Context(), three+"&replicas=1", cfg, Restored{}))(t).Close())
	wants(three, ErrYardOccupied, "was begun with 1 replicas: give --replicas 1, or choose another name by --yard")
	testkit.Must(t, testkit.Value(Restore(t.Context(), three+"&replicas=1", cfg, Restored{}))(t).Finish(t.Context()))
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
