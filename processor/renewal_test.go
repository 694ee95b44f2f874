package processor_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// byPresence runs a test with leases that hang on presences.
func byPresence(t *testing.T, partitions int, test func(w *world)) {
	bubbleWith(t, partitions, true, test)
}

// hanging is how many leases hang on a presence.
func (w *world) hanging() (n int) {
	leases, err := w.store.Leases(context.Background(), group)
	testkit.Must(w.t, err)
	for _, l := range leases {
		if l.Presence != "" {
			n++
		}
	}
	return n
}

// presence is an instance's entry.
func (w *world) presence(id string) processor.Entry {
	list, err := w.store.Entries(context.Background(), group, "presence/")
	testkit.Must(w.t, err)
	for _, e := range list {
		if e.Key == "presence/"+id {
			return e
		}
	}
	return processor.Entry{}
}

// writes counts records that are written: a lease is one, whatever the call.
type writes struct {
	processor.Store
	n *atomic.Int64
}

func (s writes) KeepsPresence() bool { return s.Store.(processor.PresenceStore).KeepsPresence() }

func (s writes) Claim(ctx context.Context, g processor.Group, l []processor.Lease) ([]processor.Lease, error) {
	s.n.Add(int64(len(l)))
	return s.Store.Claim(ctx, g, l)
}

func (s writes) Put(ctx context.Context, g processor.Group, e processor.Entry) (processor.Entry, error) {
	s.n.Add(1)
	return s.Store.Put(ctx, g, e)
}

// C8: what a group writes that is at rest does not grow with its leases.
func TestAGroupAtRestWritesAsMuchAsItHasInstances(t *testing.T) {
	const partitions, instances, rounds = 1000, 4, 6
	written := map[bool]int64{}
	for _, keeps := range []bool{false, true} {
		bubbleWith(t, partitions, keeps, func(w *world) {
			var n atomic.Int64
			for i := range instances {
				cfg := w.config(string(rune('a' + i)))
				cfg.Strategy, cfg.Store = processor.Greedy, writes{w.store, &n}
				w.start(cfg, w.note)
			}
			after(3 * time.Minute)
			n.Store(0)
			after(rounds * 10 * time.Second)
			written[keeps] = n.Load() / rounds
			testkit.Equal(t, w.hanging() == partitions, keeps, "%d leases hang on a presence", w.hanging())
		})
	}
	t.Logf("records written in 10 s for %d leases of %d instances: %d renewed one by one, %d by presence", partitions, instances, written[false], written[true])
	if written[true] > 2*instances || written[false] < partitions {
		t.Errorf("written in 10 s: %v", written)
	}
}

// C4: an owner that renews at the last moment keeps what it has, also where another has read the
// records before and decides after.
func TestWhatIsRenewedWhileAnotherDecidesIsNotTaken(t *testing.T) {
	byPresence(t, 2, func(w *world) {
		a := &acting{now: map[string]string{}}
		w.feedAll(0, 1)
		aCfg, aStore := w.faulty("a")
		bCfg, bStore := w.faulty("b")
		bCfg.Poll = 100 * time.Millisecond // it sees each renewal at once
		var put atomic.Int64
		aStore.before = func(op string) {
			if op == "put" {
				put.Store(time.Now().UnixNano())
			}
		}
		var hold atomic.Bool
		bStore.before = func(op string) {
			if op == "leases" && hold.CompareAndSwap(true, false) {
				time.Sleep(9500 * time.Millisecond)
			}
		}
		for _, cfg := range []processor.Config{aCfg, bCfg} {
			cfg.HandlerTimeout = -1
			w.start(cfg, a.handle(cfg.ID))
		}
		after(time.Minute)
		for last := put.Load(); put.Load() == last; {
			after(50 * time.Millisecond)
		}
		renewed := time.Unix(0, put.Load())
		before := w.lease("0")
		if before.Owner != "a" {
			before = w.lease("1")
		}
		aStore.set(aStore.deny, "put", 1000)
		after(time.Until(renewed.Add(21200 * time.Millisecond)))
		hold.Store(true) // b reads the presence, and gets the leases when it has been unchanged for too long
		after(400 * time.Millisecond)
		testkit.Equal(t, hold.Load(), false, "b looks")
		aStore.set(aStore.deny, "put", 0) // a renews its presence meanwhile
		after(30 * time.Second)
		now := w.lease(before.Partition)
		testkit.Equal(t, now.Owner == "a" && now.Epoch == before.Epoch, true, "the lease is %+v", now)
		testkit.Equal(t, len(a.wrong), 0, "%v", a.wrong)
	})
}

// C4: one whose presence was ended has lost what hung on it, even if its own clock says that there
// is time, and begins again.
func TestWhoseLifeWasEndedHasLostItsLeases(t *testing.T) {
	byPresence(t, 2, func(w *world) {
		var why atomic.Value
		w.feed(0, "0", 1)
		cfg := w.config("a")
		cfg.HandlerTimeout = -1
		w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			<-ctx.Done()
			why.CompareAndSwap(nil, context.Cause(ctx))
			return processor.ErrUndone
		})
		after(time.Minute)
		before, p := w.lease("0"), w.presence("a")
		said := map[string]any{}
		testkit.Must(t, json.Unmarshal(p.Value, &said))
		testkit.Equal(t, said["life"], any(before.Presence), "life")
		said["ended"] = true
		p.Value, _ = json.Marshal(said)
		testkit.Must(t, testkit.Err(w.store.Put(context.Background(), group, p)))
		after(11 * time.Second)
		testkit.Equal(t, why.Load(), any(processor.ErrLeaseLost), "the call ended with")
		after(10 * time.Second)
		now := w.lease("0")
		testkit.Equal(t, now.Owner == "a" && now.Epoch > before.Epoch && now.Presence != before.Presence, true, "taken again as %+v after %+v", now, before)
		testkit.Equal(t, strings.Contains(string(w.presence("a").Value), now.Presence), true, "it hangs on the new life")
	})
}

// P3: with either way to renew the partitions of the dead are taken after the same time.
func TestByPresenceTheDeadAreFoundAsSoon(t *testing.T) {
	took := map[bool]time.Duration{}
	for _, keeps := range []bool{false, true} {
		for range 8 {
			bubbleWith(t, 8, keeps, func(w *world) {
				cfg, cut := w.faulty("a")
				w.start(cfg, w.note)
				for _, id := range []string{"b", "c"} {
					w.start(w.config(id), w.note)
				}
				after(5 * time.Minute)
				cut.setDown(true)
				died := time.Now()
				for w.counts()["a"] > 0 && time.Since(died) < 5*time.Minute {
					after(100 * time.Millisecond)
				}
				took[keeps] = max(took[keeps], time.Since(died))
				cut.setDown(false)
			})
		}
	}
	t.Logf("taken after %v with leases renewed one by one, %v by presence", took[false], took[true])
	if took[true] > took[false]+10*time.Second || took[true] > 41*time.Second {
		t.Errorf("taken after %v", took)
	}
}

// C7: while an instance of an older version is there leases are renewed as it knows it.
func TestBesideAnOlderVersionLeasesAreRenewedOneByOne(t *testing.T) {
	byPresence(t, 6, func(w *world) {
		a := w.start(w.config("a"), w.note)
		after(time.Minute)
		testkit.Equal(t, w.hanging(), 6, "alone")
		cfg := w.config("b")
		cfg.Store = &late{Store: w.store, older: true, rand: newRand(1), far: time.Millisecond}
		b := w.start(cfg, w.note)
		after(20 * time.Second)
		testkit.Equal(t, w.hanging(), 0, "beside it")
		w.wantCounts(3, 3)
		after(5 * time.Minute)
		w.wantCounts(3, 3)
		b.stop()
		after(30 * time.Second)
		testkit.Equal(t, w.hanging(), 6, "when it has left")
		w.wantNoErrors()
		a.stop()
		w.wantNothingLeft()
	})
}

// An outage of readings alone does not end what is renewed by presence.
func TestLeasesAreKeptWhereTheyCannotBeRead(t *testing.T) {
	byPresence(t, 3, func(w *world) {
		cfg, cut := w.faulty("a")
		w.start(cfg, w.note)
		after(time.Minute)
		before := w.lease("1")
		cut.set(cut.deny, "leases", 1_000_000)
		after(5 * time.Minute)
		w.feed(time.Second, "1", 3)
		w.wantGot("1", 0, 1, 2)
		cut.set(cut.deny, "leases", 0)
		after(time.Minute)
		testkit.Equal(t, w.lease("1").Epoch, before.Epoch, "epoch")
		testkit.Equal(t, w.hanging(), 3, "when they can be read")
	})
}

// A call that takes longer than a lease to end while the processor stops keeps its partition.
func TestWhatDrainsForLongIsRenewed(t *testing.T) {
	bubble(t, 2, func(w *world) {
		var ended atomic.Bool
		w.feed(0, "0", 1)
		cfg := w.config("a")
		cfg.Stop = 4 * time.Minute
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			time.Sleep(2 * time.Minute)
			ended.Store(ctx.Err() == nil)
			return b.Checkpoint(ctx)
		})
		after(time.Second)
		other := w.config("b")
		other.Handoff = time.Hour // it takes nothing by force
		w.start(other, w.note)
		go a.stop()
		after(100 * time.Second)
		testkit.Equal(t, w.lease("0").Owner, "a", "owner while the call goes on")
		after(time.Minute)
		testkit.Equal(t, ended.Load(), true, "the call ended in its own time")
		testkit.Equal(t, w.owners(), "b:0,1", "owners")
	})
}

// P3: a partition whose call does not end goes to another instance, though its owner is well.
func TestAPartitionThatHangsIsLeftToOthers(t *testing.T) {
	bubble(t, 1, func(w *world) {
		free := make(chan struct{})
		w.feed(0, "0", 1)
		cfg := w.config("a")
		cfg.HandlerTimeout = time.Minute
		a := w.start(cfg, func(ctx context.Context, b *processor.Batch) error {
			<-free // whatever becomes of ctx
			return nil
		})
		after(time.Second)
		w.start(w.config("b"), w.note)
		after(4 * time.Minute)
		testkit.Equal(t, w.lease("0").Owner, "b", "owner of what hangs")
		w.wantGot("0", 0)
		close(free)
		a.stop()
	})
}
