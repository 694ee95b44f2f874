package local

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"

	"github.com/eventyard/eventyard/internal/testkit"
)

// P8: what an instance of the yard's own sees keeps the contract, also where renewals stay in
// memory.
func TestStoreKeepsTheContract(t *testing.T) {
	var y *yard
	open := func(t *testing.T) processor.Store {
		y = openYard(t)
		return alone{NewStore(y.groups, "a")}
	}
	storetest.RunWith(t, open, storetest.Options{
		AnyNamespace: true,
		Prepare: func(t *testing.T, g processor.Group) {
			_, err := y.broker.EnsureHub(t.Context(), broker.HubConfig{Name: g.Hub, Partitions: storetest.Partitions}, []string{g.Group})
			testkit.Must(t, err)
		},
		Peer: func(*testing.T, processor.Store) processor.Store { return y.groups },
	})
}

// alone has looked who is there before it writes, as a processor does.
type alone struct{ *Store }

func (s alone) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	_, _ = s.Entries(ctx, g, presences)
	_, _ = s.Leases(ctx, g)
	return s.Store.Claim(ctx, g, leases)
}

// follow has the groups tell of changes, until the test ends.
func (y *yard) follow() {
	y.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- y.groups.Follow(ctx, func() { close(ready) }) }()
	y.t.Cleanup(func() {
		cancel()
		testkit.Must(y.t, <-done)
	})
	<-ready
}

var readers = processor.Group{Namespace: "yard", Hub: "orders", Group: "$Default"}

// round is what a processor does in one, and gives whether what was written is what the others see.
func round(t *testing.T, s processor.Store, lease *processor.Lease, presence *processor.Entry) {
	t.Helper()
	written, err := s.Claim(t.Context(), readers, []processor.Lease{*lease})
	testkit.Must(t, err)
	if len(written) != 1 || written[0].Version == lease.Version {
		t.Fatalf("%+v was renewed as %+v", *lease, written)
	}
	*lease = written[0]
	put, err := s.Put(t.Context(), readers, *presence)
	testkit.Must(t, err)
	testkit.MustThat(t, put.Version != presence.Version, "the presence stays %+v", put)
	*presence = put
	entries, err := s.Entries(t.Context(), readers, presences)
	testkit.Must(t, err)
	leases, err := s.Leases(t.Context(), readers)
	testkit.Must(t, err)
	for _, f := range entries {
		if f.Key == presence.Key && f.Version != presence.Version {
			t.Fatalf("the presence is %+v, not %+v", f, *presence)
		}
	}
	for _, l := range leases {
		if l.Partition == lease.Partition && l.Version != lease.Version {
			t.Fatalf("the lease is %+v, not %+v", l, *lease)
		}
	}
}

// P1, P6: renewals that nobody sees stay in memory, but for operators; once somebody is there all
// are written.
func TestRenewalsAreForOthersToSee(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%v", watched), func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				s := NewStore(y.groups, "a")
				if watched {
					y.follow()
					testkit.Must(t, s.Subscribe(t.Context(), readers, func() {}))
				}
				lease := processor.Lease{Partition: "0", Owner: "a", Epoch: 1}
				presence := processor.Entry{Key: presences + "a", Value: []byte("{}")}
				recorded := func() processor.Version {
					leases, err := y.groups.Leases(t.Context(), readers)
					testkit.Must(t, err)
					return leases[0].Version
				}
				round(t, s, &lease, &presence)
				first, began, writes := recorded(), time.Now(), 0
				for time.Since(began) < 5*rewriteLease {
					time.Sleep(9 * time.Second)
					round(t, s, &lease, &presence)
					if now := recorded(); now != first {
						first, writes = now, writes+1
					}
					table, err := y.groups.Table(t.Context(), readers.Hub, readers.Group)
					testkit.Must(t, err)
					testkit.MustThat(t, table.Partitions[0].Alive && table.Instances[0].Alive, "operators take it for dead: %+v", table)
				}
				testkit.That(t, writes >= 4 && writes <= 5, "alone it wrote the lease %d times", writes)
				other, err := y.groups.Put(t.Context(), readers, processor.Entry{Key: presences + "b", Value: []byte("{}")})
				testkit.Must(t, err)
				synctest.Wait()
				round(t, s, &lease, &presence) // in which it learns of the other
				for range 3 {
					before := recorded()
					round(t, s, &lease, &presence)
					testkit.That(t, recorded() != before, "it did not write, though another is there")
				}
				testkit.Must(t, y.groups.Remove(t.Context(), readers, other))
				round(t, s, &lease, &presence)
				taken, err := y.groups.Claim(t.Context(), readers, []processor.Lease{{Partition: "0", Owner: "b", Epoch: 2, Version: recorded()}})
				testkit.Must(t, err)
				synctest.Wait()
				if leases, err := s.Leases(t.Context(), readers); err != nil || leases[0].Owner != "b" || leases[0].Version != taken[0].Version {
					t.Errorf("taken by another it is %+v, %v", leases, err)
				}
				if got, err := s.Claim(t.Context(), readers, []processor.Lease{lease}); err != nil || len(got) != 0 {
					t.Errorf("renewed all the same: %+v, %v", got, err)
				}
			})
		})
	}
}

// P6: what somebody has removed is written again at the next renewal, also where nobody else is
// there: a group made anew has none of it.
func TestWhatWasRemovedIsWrittenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		g := processor.Group{Namespace: "yard", Hub: "orders", Group: "one"}
		_, err := y.broker.CreateGroup(t.Context(), g.Hub, g.Group)
		testkit.Must(t, err)
		y.follow()
		s := NewStore(y.groups, "a")
		testkit.Must(t, s.Subscribe(t.Context(), g, func() {}))
		lease := processor.Lease{Partition: "0", Owner: "a", Epoch: 1}
		presence := processor.Entry{Key: presences + "a", Value: []byte("{}")}
		look := func() (there []processor.Entry, leases []processor.Lease) {
			t.Helper()
			synctest.Wait()
			there, err := s.Entries(t.Context(), g, presences)
			testkit.Must(t, err)
			leases, err = s.Leases(t.Context(), g)
			testkit.Must(t, err)
			return there, leases
		}
		for range 3 { // the last of them in memory
			look()
			written, err := s.Claim(t.Context(), g, []processor.Lease{lease})
			testkit.Must(t, err)
			lease = written[0]
			presence, err = s.Put(t.Context(), g, presence)
			testkit.Must(t, err)
		}
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), g.Hub, g.Group))
		_, err = y.broker.CreateGroup(t.Context(), g.Hub, g.Group)
		testkit.Must(t, err)
		if there, leases := look(); len(there)+len(leases) != 0 {
			t.Errorf("in the new group it finds %v and %v", there, leases)
		}
		if got, err := s.Claim(t.Context(), g, []processor.Lease{lease}); err != nil || len(got) != 0 {
			t.Errorf("the lease of the old one was renewed: %v, %v", got, err)
		}
		if put, err := s.Put(t.Context(), g, presence); !errors.Is(err, processor.ErrConflict) {
			t.Errorf("the presence of the old one was renewed: %v, %v", put, err)
		}
		presence.Version = ""
		_, err = s.Put(t.Context(), g, presence)
		testkit.Must(t, err)
		look()
		// And it hears of who comes there.
		_, err = y.groups.Put(t.Context(), g, processor.Entry{Key: presences + "b", Value: []byte("{}")})
		testkit.Must(t, err)
		if there, _ := look(); len(there) != 2 {
			t.Errorf("when another has come it finds %v", there)
		}
	})
}
