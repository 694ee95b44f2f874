package groups

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P1: subscribers hear what a watch would, of their group alone, and all of them after a watch was
// lost.
func TestSubscribersHearOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := metatest.NewFaulty(storagetest.Entries(t))
		y := newYard(t, store)
		one, other := processor.Group{Hub: "orders", Group: "one"}, processor.Group{Hub: "orders", Group: "other"}
		y.group(t, one.Hub, one.Group, 2)
		y.group(t, other.Hub, other.Group, 2)
		testkit.ErrorIs(t, y.Subscribe(t.Context(), one, func() {}), errors.ErrUnsupported, "before anybody follows")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- y.Follow(ctx, func() {}) }()
		synctest.Wait()
		var heard, elsewhere int
		subscribed, leave := context.WithCancel(t.Context())
		if err := errors.Join(y.Subscribe(subscribed, one, func() { heard++ }), y.Subscribe(t.Context(), other, func() { elsewhere++ })); err != nil {
			t.Fatal(err)
		}
		if err := y.Subscribe(t.Context(), processor.Group{Hub: "nothing"}, func() {}); err == nil {
			t.Error("a hub that is not there can be subscribed to")
		}
		expect := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			testkit.Equal(t, heard, want, "after %s it has heard", what)
			heard = 0
		}
		claim := func(l processor.Lease) processor.Lease {
			t.Helper()
			written, err := y.Claim(t.Context(), one, []processor.Lease{l})
			if err != nil || len(written) != 1 {
				t.Fatal(written, err)
			}
			return written[0]
		}
		l := claim(processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
		expect("a lease was taken", 1)
		l = claim(l)
		expect("it was renewed", 0)
		testkit.Must(t, testkit.Err(y.Begin(t.Context(), one, l)))
		expect("a checkpoint was begun", 0)
		e, err := y.Put(t.Context(), one, processor.Entry{Key: "presence/a", Value: []byte("1")})
		expect("an entry was put", 1)
		e, err2 := y.Put(t.Context(), one, e)
		expect("it was put again", 0)
		testkit.Must(t, errors.Join(err, err2, y.Remove(t.Context(), one, e)))
		expect("it was removed", 1)
		testkit.Equal(t, elsewhere, 0, "the other group has heard")
		store.LoseWatches(broker.RecordsPrefix)
		time.Sleep(time.Second)
		expect("the watch was lost", 1)
		leave()
		synctest.Wait()
		claim(processor.Lease{Partition: "1", Owner: "a", Epoch: 1})
		expect("it has left", 0)
		broken := errors.New("broken")
		store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpWatch {
				return broken
			}
			return nil
		})
		store.LoseWatches(broker.RecordsPrefix)
		testkit.ErrorIs(t, <-done, broken, "a store that fails")
		testkit.ErrorIs(t, y.Subscribe(t.Context(), one, func() {}), errors.ErrUnsupported, "when nobody follows any more")
		cancel()
		if err := y.Follow(ctx, func() {}); err != nil {
			t.Errorf("ended it is %v", err)
		}
	})
}

// P1: a group, or its hub, that is deleted and made anew has other records: who has subscribed
// hears of those, however quick it was, and also where nobody followed just then.
func TestSubscribersHearOfAGroupMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		at          processor.Group
		while       time.Duration // between the two
		lost, whole bool
	}{
		"at once":                    {at: processor.Group{Hub: "orders", Group: "one"}},
		"later":                      {at: processor.Group{Hub: "orders", Group: "one"}, while: time.Second},
		"while the watch is lost":    {at: processor.Group{Hub: "orders", Group: "one"}, lost: true},
		"the hub, at once":           {at: processor.Group{Hub: "orders", Group: "$Default"}, whole: true},
		"the hub, later":             {at: processor.Group{Hub: "orders", Group: "one"}, while: time.Second, whole: true},
		"the hub, the watch is lost": {at: processor.Group{Hub: "orders", Group: "$Default"}, lost: true, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := metatest.NewFaulty(storagetest.Entries(t))
				y := newYard(t, store)
				remake := func() {
					t.Helper()
					_, err := y.broker.EnsureHub(t.Context(), broker.HubConfig{Name: c.at.Hub, Partitions: 2}, []string{c.at.Group})
					testkit.Must(t, err)
				}
				claim := func() {
					t.Helper()
					written, err := y.Claim(t.Context(), c.at, []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}})
					if err != nil || len(written) != 1 {
						t.Fatal(written, err)
					}
					synctest.Wait()
				}
				remake()
				claim()
				stop := testkit.Run(t, func(ctx context.Context) error { return y.Follow(ctx, func() {}) })
				synctest.Wait()
				heard := 0
				subscribed, leave := context.WithCancel(t.Context())
				testkit.Must(t, y.Subscribe(subscribed, c.at, func() { heard++ }))
				if c.lost {
					store.LoseWatches(broker.RecordsPrefix)
					synctest.Wait()
				}
				if c.whole {
					testkit.Must(t, y.broker.DeleteHub(t.Context(), c.at.Hub))
				} else {
					testkit.Must(t, y.broker.DeleteGroup(t.Context(), c.at.Hub, c.at.Group))
				}
				time.Sleep(c.while)
				remake()
				time.Sleep(time.Second)
				synctest.Wait()
				if heard == 0 {
					t.Error("it has not heard that the group has gone")
				}
				heard = 0
				claim()
				testkit.Equal(t, heard, 1, "of a lease in the new group it has heard")
				leave()
				synctest.Wait()
				testkit.Equal(t, len(y.subscribers.byGroup), 0, "groups are left of which somebody hears")
				stop()
			})
		})
	}
}
