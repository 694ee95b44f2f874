package groups

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P1: a group, or its hub, that is deleted and made anew has other records: who has subscribed hears
// of those, however quick it was, and also where nobody followed just then.
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
				store := &losing{Memory: metatest.NewMemory()}
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
				ctx, cancel := context.WithCancel(t.Context())
				done := begin(func() error { return y.Follow(ctx, func() {}) })
				synctest.Wait()
				heard := 0
				subscribed, leave := context.WithCancel(t.Context())
				testkit.Must(t, y.Subscribe(subscribed, c.at, func() { heard++ }))
				if c.lost {
					store.lose(meta.ErrWatchLost)
					synctest.Wait()
				}
				if c.whole {
					testkit.Must(t, y.broker.DeleteHub(t.Context(), c.at.Hub))
				} else {
					testkit.Must(t, y.broker.DeleteGroup(t.Context(), c.at.Hub, c.at.Group))
				}
				time.Sleep(c.while)
				remake()
				time.Sleep(2 * lostPause)
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
				cancel()
				testkit.Must(t, <-done)
			})
		})
	}
}

func begin(run func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	return done
}
