package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// H1: hubs are found in any spelling, $Default too, and other groups as they are spelt.
func TestNames(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "Orders", "billing", 2)
	y.own(t, g, "0", "a", 1)
	d := y.group(t, "Orders", "$Default", 2)
	y.own(t, d, "1", "b", 1)
	for _, tt := range []struct {
		g     processor.Group
		owner string
	}{
		{processor.Group{Hub: "ORDERS", Group: "billing"}, "a"},
		{processor.Group{Namespace: "other", Hub: "orders", Group: "billing"}, "a"},
		{processor.Group{Hub: "orders", Group: "$DEFAULT"}, "b"},
		{processor.Group{Hub: "Orders", Group: "$default"}, "b"},
	} {
		t.Run(fmt.Sprintf("%s of %s", tt.g.Group, tt.g.Hub), func(t *testing.T) {
			leases, err := y.Leases(t.Context(), tt.g)
			if err != nil || len(leases) != 1 || leases[0].Owner != tt.owner {
				t.Errorf("%+v has %+v, %v", tt.g, leases, err)
			}
		})
	}
	for _, tt := range []struct {
		g    processor.Group
		kind string
	}{
		{processor.Group{Hub: "nothing", Group: "billing"}, broker.KindHub},
		{processor.Group{Hub: "orders", Group: "Billing"}, broker.KindGroup},
		{processor.Group{Hub: "orders", Group: ""}, broker.KindGroup},
	} {
		t.Run(fmt.Sprintf("%q of %s", tt.g.Group, tt.g.Hub), func(t *testing.T) {
			wantNotFound(t, testkit.Err(y.Leases(t.Context(), tt.g)), tt.kind, "leases")
			wantNotFound(t, y.Watch(t.Context(), tt.g, func() {}, nil), tt.kind, "watch")
		})
	}
}

// P1: a group has leases and checkpoints of partitions that exist, and records of a decent form.
func TestRecordsAreChecked(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 2)
	for _, partition := range []string{"2", "-1", "01", "", "x", "0/1"} {
		l := processor.Lease{Partition: partition, Owner: "a", Epoch: 1}
		if _, err := y.Claim(t.Context(), g, []processor.Lease{l}); !isNotFound(err, broker.KindPartition) {
			t.Errorf("claim of partition %q: %v", partition, err)
		}
		wantNotFound(t, testkit.Err(y.Begin(t.Context(), g, l)), broker.KindPartition, "begin of partition %q", partition)
		if _, err := y.Force(t.Context(), g, processor.Checkpoint{Partition: partition}); !isNotFound(err, broker.KindPartition) {
			t.Errorf("force of partition %q: %v", partition, err)
		}
	}
	long := strings.Repeat("x", maxOwnerBytes+1)
	for _, l := range []processor.Lease{
		{Partition: "0", Owner: "a", Epoch: -1}, {Partition: "0", Owner: long, Epoch: 1}, {Partition: "0", Owner: "\xff", Epoch: 1},
		{Partition: "0", Owner: "a\nb", Epoch: 1},
	} {
		testkit.ErrorIs(t, testkit.Err(y.Claim(t.Context(), g, []processor.Lease{l})), ErrInvalid, "claim of %.40q at %d", l.Owner, l.Epoch)
	}
	for _, c := range []processor.Checkpoint{
		{Partition: "0", Sequence: -2}, {Partition: "0", Offset: long}, {Partition: "0", HubID: "\xff"},
	} {
		testkit.ErrorIs(t, testkit.Err(y.Force(t.Context(), g, c)), ErrInvalid, "force")
	}
}

// P1: an acquisition that does not raise the epoch is left out.
func TestAnAcquisitionRaisesTheEpoch(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	l := y.own(t, g, "0", "a", 3)
	l.Owner = "b"
	if won, err := y.Claim(t.Context(), g, []processor.Lease{l}); err != nil || len(won) != 0 {
		t.Errorf("b won %v, %v", won, err)
	}
}

// Versions that we never gave are nobody's.
func TestForeignVersionsConflict(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	l := y.own(t, g, "0", "a", 1)
	c := y.checkpointAt(t, g, l, 1, "1")
	y.put(t, g, "k", "v")
	for _, v := range []processor.Version{"x", "-1", "0", "1.x", "x.1", "0.0", "99999999999999999999", "999999", "999999.0"} {
		if won, err := y.Claim(t.Context(), g, []processor.Lease{{Partition: "0", Owner: "b", Epoch: 9, Version: v}}); err != nil || len(won) > 0 {
			t.Errorf("claim in version %q won %v, %v", v, won, err)
		}
		c.Version = v
		testkit.ErrorIs(t, testkit.Err(y.Save(t.Context(), g, l, c)), processor.ErrConflict, "save in version %q", v)
		testkit.ErrorIs(t, testkit.Err(y.Force(t.Context(), g, c)), processor.ErrConflict, "force in version %q", v)
		if _, err := y.Put(t.Context(), g, processor.Entry{Key: "k", Version: v}); !errors.Is(err, processor.ErrConflict) {
			t.Errorf("put in version %q: %v", v, err)
		}
	}
}

// P8: a group has a bounded number of entries; what is removed makes room.
func TestEntriesAreBounded(t *testing.T) {
	y := newYard(t, nil)
	k, err := New(Config{Meta: y.meta, Broker: y.broker, MaxEntries: 3, Log: testkit.Quiet()})
	testkit.Must(t, err)
	y.Registry = k
	g, other := y.group(t, "orders", "billing", 1), y.group(t, "orders", "other", 1)
	var last processor.Entry
	for i := range 3 {
		last = y.put(t, g, fmt.Sprint("k/", i), "v")
	}
	testkit.ErrorIs(t, testkit.Err(y.Put(t.Context(), g, processor.Entry{Key: "more"})), ErrTooManyEntries, "the fourth")
	if last, err = y.Put(t.Context(), g, last); err != nil { // no new one
		t.Error(err)
	}
	y.put(t, other, "k", "another group's")
	testkit.Must(t, y.Remove(t.Context(), g, last))
	y.put(t, g, "more", "there is room")

	again, err := New(Config{Meta: y.meta, Broker: y.broker, MaxEntries: 3, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.ErrorIs(t, testkit.Err(again.Put(t.Context(), g, processor.Entry{Key: "still-more"})), ErrTooManyEntries, "after a restart")
}

// P8: a group's entries measure no more together than a yard can read at once; what is removed or
// made smaller makes room.
func TestEntriesAreBoundedInBytes(t *testing.T) {
	y := newYard(t, nil)
	k, err := New(Config{Meta: y.meta, Broker: y.broker, MaxEntryBytes: 10_000, Log: testkit.Quiet()})
	testkit.Must(t, err)
	g := y.group(t, "orders", "billing", 1)
	small, err := k.Put(t.Context(), g, processor.Entry{Key: "small"})
	testkit.Must(t, err)
	large, err := k.Put(t.Context(), g, processor.Entry{Key: "large", Value: make([]byte, 6000)})
	testkit.Must(t, err)
	small.Value = make([]byte, 6000)
	testkit.ErrorIs(t, testkit.Err(k.Put(t.Context(), g, small)), ErrTooManyEntries, "one that grows")
	testkit.ErrorIs(t, testkit.Err(k.Put(t.Context(), g, processor.Entry{Key: "new", Value: small.Value})), ErrTooManyEntries, "a new one")
	if large, err = k.Put(t.Context(), g, large); err != nil { // it grows not
		t.Error(err)
	}
	large.Value = nil
	large, err = k.Put(t.Context(), g, large)
	testkit.Must(t, err)
	if small, err = k.Put(t.Context(), g, small); err != nil {
		t.Errorf("after another was made smaller: %v", err)
	}
	testkit.Must(t, k.Remove(t.Context(), g, small))
	if _, err := k.Put(t.Context(), g, processor.Entry{Key: "new", Value: make([]byte, 6000)}); err != nil {
		t.Errorf("after another was removed: %v", err)
	}
}

// H1: what is recorded of a group goes with it, and with its hub, and does not come back.
func TestRecordsGoWithTheirGroupAndHub(t *testing.T) {
	y := newYard(t, nil)
	remove := map[string]func() error{
		"group": func() error { return y.broker.DeleteGroup(t.Context(), "orders", "billing") },
		"hub":   func() error { return y.broker.DeleteHub(t.Context(), "orders") },
	}
	for what, remove := range remove {
		g, d := y.group(t, "orders", "billing", 1), y.group(t, "orders", "$Default", 1)
		l := y.fill(t, g)
		y.fill(t, d)
		old := testkit.Value(y.Checkpoints(t.Context(), g))(t)
		testkit.Must(t, remove())
		if _, err := y.Leases(t.Context(), g); err == nil {
			t.Errorf("%s: there are leases of what was deleted", what)
		}
		kept := 3 // $Default's, where only the group was deleted
		if what == "hub" {
			kept = 0
		}
		if left, err := y.meta.List(t.Context(), "records/"); err != nil || len(left) != kept {
			t.Errorf("%s: %d records are left, %v, want %d", what, len(left), err, kept)
		}
		g = y.group(t, "orders", "billing", 1)
		y.wantEmpty(t, g)
		testkit.ErrorIs(t, testkit.Err(y.Save(t.Context(), g, l, old[0])), processor.ErrFenced,
			"%s: a save of the former group's owner", what)
		if won, err := y.Claim(t.Context(), g, []processor.Lease{l}); err != nil || len(won) > 0 {
			t.Errorf("%s: a renewal of the former group's owner won %v, %v", what, won, err)
		}
		y.wantEmpty(t, g)
		testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
	}
}

// fill writes one record of each kind.
func (y *yard) fill(t *testing.T, g processor.Group) processor.Lease {
	t.Helper()
	l := y.own(t, g, "0", "a", 7)
	y.checkpointAt(t, g, l, 5, "5")
	y.put(t, g, "presence/a", "x")
	return l
}

func (y *yard) wantEmpty(t *testing.T, g processor.Group) {
	t.Helper()
	leases, err1 := y.Leases(t.Context(), g)
	checkpoints, err2 := y.Checkpoints(t.Context(), g)
	stored, err3 := y.Entries(t.Context(), g, "")
	if err := errors.Join(err1, err2, err3); err != nil || len(leases)+len(checkpoints)+len(stored) > 0 {
		t.Errorf("a new group has %v, %v, %v, %v", leases, checkpoints, stored, err)
	}
}

// H1: a record made while its group is being deleted does not stay behind.
func TestRecordsMadeDuringADeletion(t *testing.T) {
	for _, what := range []string{"lease", "checkpoint", "fact"} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t, nil)
			g := y.group(t, "orders", "billing", 1)
			interrupted := metatest.NewFaulty(y.meta)
			interrupted.InjectOnce(isSet, func(metatest.Op) error { return y.broker.DeleteGroup(t.Context(), g.Hub, g.Group) })
			k, err := New(Config{Meta: interrupted, Broker: y.broker, Log: testkit.Quiet()})
			testkit.Must(t, err)
			switch what {
			case "lease":
				_, err = k.Claim(t.Context(), g, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
			case "checkpoint":
				_, err = k.Force(t.Context(), g, processor.Checkpoint{Partition: "0", Sequence: 1})
			case "fact":
				_, err = k.Put(t.Context(), g, processor.Entry{Key: "k"})
			}
			if !isNotFound(err, broker.KindGroup) {
				t.Errorf("got %v", err)
			}
			left, err := y.meta.List(t.Context(), "records/")
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func isSet(op metatest.Op) bool { return op.Kind == metatest.OpSet }

// H1: nor does one whose maker leaves at that very moment.
func TestARecordMadeDuringADeletionByWhoLeaves(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	ctx, leave := context.WithCancel(t.Context())
	store := metatest.NewFaulty(y.meta)
	store.InjectOnce(isSet, func(metatest.Op) error {
		testkit.Check(t, y.broker.DeleteGroup(t.Context(), g.Hub, g.Group))
		return metatest.After(func(err error) error { leave(); return err })
	})
	k, err := New(Config{Meta: store, Broker: y.broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	if _, err := k.Claim(ctx, g, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}}); err == nil {
		t.Error("it was claimed")
	}
	left, err := y.meta.List(t.Context(), "records/")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A watch ends when its group is deleted: one of the same name has other records.
func TestAWatchEndsWithItsGroup(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.fill(t, g)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- y.Watch(t.Context(), g, func() { close(ready) }, make(chan struct{}, 1)) }()
	<-ready
	testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "billing"))
	if err := <-ended; !isNotFound(err, broker.KindGroup) {
		t.Errorf("the watch ended with %v", err)
	}
}

// A record of a later form is an error that names it, not a guess.
func TestALaterFormatIsRefused(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.fill(t, g)
	all := testkit.Value(y.meta.List(t.Context(), "records/"))(t)
	for _, e := range all {
		later := strings.Replace(string(e.Value), `"v":1`, `"v":2`, 1)
		testkit.Must(t, testkit.Err(y.meta.CompareAndSet(t.Context(), e.Key, e.Revision, []byte(later))))
	}
	_, err1 := y.Leases(t.Context(), g)
	_, err2 := y.Checkpoints(t.Context(), g)
	_, err3 := y.Entries(t.Context(), g, "")
	for _, err := range []error{err1, err2, err3} {
		if err == nil || !strings.Contains(err.Error(), "format 2") {
			t.Errorf("got %v", err)
		}
	}
}

// Many renewals at once are a few durable writes, and all or those that fail are known.
func TestAFailedClaimGivesTheLeasesThatWereWritten(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 100)
	failing := metatest.NewFaulty(y.meta)
	failing.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpSet && strings.HasSuffix(op.Key, "lease/42") {
			return meta.ErrUncertain
		}
		return nil
	})
	k, err := New(Config{Meta: failing, Broker: y.broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	leases := make([]processor.Lease, 100)
	for i := range leases {
		leases[i] = processor.Lease{Partition: fmt.Sprint(i), Owner: "a", Epoch: 1}
	}
	won, err := k.Claim(t.Context(), g, leases)
	if !errors.Is(err, meta.ErrUncertain) || len(won) != 99 {
		t.Errorf("won %d, %v", len(won), err)
	}
	for i, l := range won[:42] {
		testkit.MustEqual(t, l.Partition, fmt.Sprint(i), "lease %d is of partition", i)
	}
}

// P1: on a replicated store a read may be older than what the caller was told by another node:
// neither a renewal nor a checkpoint fails for that, and nothing is fenced less.
func TestStaleReads(t *testing.T) {
	store := storagetest.Entries(t)
	y := newYard(t, store)
	g := y.group(t, "orders", "billing", 2)
	stale := &staleStore{Store: store}
	k := testkit.Value(New(Config{Meta: stale, Broker: y.broker, Log: testkit.Quiet()}))(t)
	former := y.own(t, g, "0", "former", 1)
	old := y.checkpointAt(t, g, former, 5, "5")
	y.own(t, g, "1", "liar", 1)
	stale.freeze(t)

	l := y.own(t, g, "0", "a", 2) // by another node
	c := testkit.Value(y.Begin(t.Context(), g, l))(t)
	if won, err := k.Claim(t.Context(), g, []processor.Lease{l}); err != nil || len(won) != 1 || !won[0].Acquired.Equal(l.Acquired) {
		t.Fatalf("renewal gave %+v, %v", won, err)
	}
	liar := y.own(t, g, "1", "liar", 2)
	liar.Acquired = time.Now().AddDate(1000, 0, 0)
	if won, err := k.Claim(t.Context(), g, []processor.Lease{liar}); err != nil || len(won) != 1 || won[0].Renewed.After(time.Now()) {
		t.Errorf("a renewal from the future gave %+v, %v", won, err)
	}
	c.Sequence, c.Offset = 6, "6"
	testkit.Check(t, testkit.Err(k.Save(t.Context(), g, l, c)), "save")
	old.Sequence = 9
	if _, err := k.Save(t.Context(), g, former, old); err == nil {
		t.Error("the former owner saved")
	}
	c.Version = fencedVersion(1, 0) // whatever the former owner makes up of old versions
	if _, err := k.Save(t.Context(), g, former, c); err == nil {
		t.Error("the former owner saved")
	}
}

// staleStore reads what was there when it was frozen.
type staleStore struct {
	meta.Store
	frozen map[string]meta.Entry
}

func (s *staleStore) freeze(t *testing.T) {
	all := testkit.Value(s.Store.List(t.Context(), ""))(t)
	s.frozen = map[string]meta.Entry{}
	for _, e := range all {
		s.frozen[e.Key] = e
	}
}

func (s *staleStore) Get(ctx context.Context, key string) (meta.Entry, error) {
	if s.frozen == nil {
		return s.Store.Get(ctx, key)
	}
	e, found := s.frozen[key]
	if !found {
		return e, meta.ErrNotFound
	}
	return e, nil
}
