package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

func (y *yard) putEntry(t testing.TB, g processor.Group, key, value string) processor.Entry {
	t.Helper()
	f := processor.Entry{Key: key, Value: []byte(value)}
	there := testkit.Value(y.Entries(t.Context(), g, ""))(t)
	for _, had := range there {
		if had.Key == key {
			f.Version = had.Version
		}
	}
	f = testkit.Value(y.Put(t.Context(), g, f))(t)
	return f
}

func words(stored []GroupEntry) []string {
	all := make([]string, len(stored))
	for i, f := range stored {
		all[i] = fmt.Sprintf("%s %s %s=%s", f.Group.Hub, f.Group.Group, f.Key, f.Value)
		if f.Gone {
			all[i] += " gone"
		}
	}
	slices.Sort(all)
	return all
}

// The place of records is the broker's to choose: this package has to know where it begins.
func TestRecordsAreWhereTheyAreLookedFor(t *testing.T) {
	y := newYard(t, nil)
	y.group(t, "orders", "billing", 1)
	for _, group := range []string{"billing", "$Default"} {
		r, err := y.broker.GroupRecords(t.Context(), "orders", group)
		if err != nil || !strings.HasPrefix(r.Prefix, broker.RecordsPrefix) || strings.Count(r.Prefix, "/") != 3 {
			t.Errorf("%s has its records under %q, %v", group, r.Prefix, err)
		}
	}
}

// F5: an operator sees the circuits of all groups.
func TestEntriesOfAllGroupsAreFound(t *testing.T) {
	y := newYard(t, nil)
	billing, other := y.group(t, "Team/Orders", "Billing", 2), y.group(t, "images", "$default", 1)
	y.group(t, "empty", "none", 1)
	y.putEntry(t, billing, "circuit/a", "1")
	y.putEntry(t, billing, "failures/a/i", "2")
	y.putEntry(t, billing, "circuits/no", "3")
	y.putEntry(t, other, "circuit/b", "4")
	y.own(t, billing, "0", "somebody", 1)

	found := testkit.Value(y.FindEntries(t.Context(), "circuit/", "failures/"))(t)
	want := []string{"Team/Orders Billing circuit/a=1", "Team/Orders Billing failures/a/i=2", "images $Default circuit/b=4"}
	testkit.Diff(t, want, words(found))
	for _, f := range found {
		testkit.Check(t, testkit.Err(y.Put(t.Context(), f.Group, f.Entry)), "%s cannot be put again", f.Key)
	}
	testkit.ErrorIs(t, testkit.Err(y.FindEntries(t.Context(), "circuit")), ErrInvalid, "a prefix without end")
}

func TestEntriesThatCannotBeReadDoNotHideOthers(t *testing.T) {
	y := newYard(t, nil)
	g := y.group(t, "orders", "billing", 1)
	y.putEntry(t, g, "circuit/a", "1")
	r, err := y.broker.GroupRecords(t.Context(), "orders", "billing")
	testkit.Must(t, err)
	for _, key := range []string{r.Prefix + "fact/circuit/broken", broker.RecordsPrefix + "no-such-log/id/fact/circuit/a", "records/x"} {
		testkit.Must(t, testkit.Err(y.meta.CompareAndSet(t.Context(), key, 0, []byte("{"))))
	}
	found, err := y.FindEntries(t.Context(), "circuit/")
	if diff := cmp.Diff([]string{"orders billing circuit/a=1"}, words(found)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// F5: to show the circuits of all groups, leases and checkpoints are not read.
func TestFindingEntriesReadsNoLeases(t *testing.T) {
	store := metatest.NewFaulty(storagetest.Entries(t))
	y := newYard(t, store)
	y.putEntry(t, y.group(t, "orders", "billing", 1), "circuit/a", "1")
	store.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpList && op.Under(broker.RecordsPrefix) && !strings.HasSuffix(op.Key, "/fact/circuit/") {
			return fmt.Errorf("all under %s are read", op.Key)
		}
		return nil
	})
	found := testkit.Value(y.FindEntries(t.Context(), "circuit/"))(t)
	testkit.Diff(t, []string{"orders billing circuit/a=1"}, words(found))
}

// "Cannot be read" is never "does not exist".
func TestAFailingStoreIsNotTakenForAnEmptyOne(t *testing.T) {
	store, silent := metatest.NewFaulty(storagetest.Entries(t)), errors.New("no answer")
	y := newYard(t, store)
	y.putEntry(t, y.group(t, "orders", "billing", 1), "circuit/a", "1")
	for _, prefix := range []string{"records/", "groups/orders"} { // of which only the broker reads the groups
		store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpList && op.Under(prefix) {
				return silent
			}
			return nil
		})
		found, err := y.FindEntries(t.Context(), "circuit/")
		testkit.ErrorIs(t, err, silent, "%s: found %v", prefix, found)
	}
}

// F6: changes of circuits are reported, whoever makes them.
func TestEntriesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		g := y.group(t, "orders", "billing", 1)
		y.putEntry(t, g, "circuit/a", "1")
		ctx, stop := context.WithCancel(t.Context())
		reported, ended := make(chan []GroupEntry, 100), make(chan error, 1)
		go func() { ended <- y.FollowEntries(ctx, "circuit/", func(f []GroupEntry) { reported <- f }) }()
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			select {
			case got := <-reported:
				testkit.Diff(t, want, words(got))
			default:
				t.Errorf("nothing was told, want %v", want)
			}
		}
		expect("orders billing circuit/a=1")
		y.putEntry(t, g, "work/a/0", "x")
		y.own(t, g, "0", "somebody", 1)
		y.putEntry(t, g, "circuit/a", "2")
		expect("orders billing circuit/a=2")
		late := y.group(t, "late", "new", 1)
		f := y.putEntry(t, late, "circuit/b", "3")
		expect("late new circuit/b=3")
		testkit.Must(t, y.Remove(t.Context(), late, f))
		expect("late new circuit/b= gone")
		testkit.Must(t, y.broker.DeleteGroup(t.Context(), "orders", "billing"))
		expect("orders billing circuit/a= gone")
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// F6: an entry may be reported before its hub is, where another node made both.
func TestAnEntryOfAHubNotKnownYetIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storagetest.Entries(t)
		y := newYard(t, store)
		other := openYard(t, store, y.engine) // knows what there was when it was opened
		reported, ended := make(chan []GroupEntry, 100), make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- other.FollowEntries(ctx, "circuit/", func(f []GroupEntry) { reported <- f }) }()
		<-reported
		y.putEntry(t, y.group(t, "orders", "billing", 1), "circuit/a", "1")
		synctest.Wait()
		if len(reported) > 0 {
			t.Errorf("told %v of a hub that is not known", <-reported)
		}
		running := make(chan error, 1)
		go func() { running <- other.broker.Run(ctx) }()
		testkit.Diff(t, []string{"orders billing circuit/a=1"}, words(<-reported))
		stop()
		<-ended
		<-running
	})
}
