package topics

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1: thousands of subscriptions of one topic can be made one by one, by somebody who waits for
// them, and deleted with their topic. Were each change to build everything anew, it would take
// minutes.
func TestThousandsOfSubscriptions(t *testing.T) {
	const many = 5_000
	y := newYard(t)
	k := y.open(t, Config{})
	its := mustTopic(t, k, "orders")
	began := time.Now()
	for i := range many {
		mustCreate(t, k, topic("orders"), fmt.Sprintf("sub-%d", i), hook(example))
	}
	created := time.Since(began)
	testkit.MustEqual(t, len(k.Snapshot().BySource[its.ID]), many, "there")
	began = time.Now()
	for i := range 100 {
		_, err := k.Update(t.Context(), topic("orders"), fmt.Sprintf("sub-%d", 47*i), change(func(s *Settings) { s.MaxEvents = 2 }))
		testkit.Must(t, err)
	}
	updated := time.Since(began)
	began = time.Now()
	k = y.open(t, Config{})
	opened := time.Since(began)
	checkSnapshot(t, k.Snapshot())
	began = time.Now()
	testkit.Must(t, k.DeleteTopic(t.Context(), "orders"))
	deleted := time.Since(began)
	t.Logf("%d created in %v, 100 updated in %v, opened in %v, deleted in %v", many, created, updated, opened, deleted)
	if limit := 30 * time.Second; created > limit || opened > limit || deleted > limit {
		t.Errorf("that is too slow")
	}
	testkit.Equal(t, len(k.Snapshot().Subscriptions), 0, "are left")
}

// slowStore takes its time for deletions, of which it does many at once, as one on a disk does.
type slowStore struct{ meta.Store }

func (s slowStore) Delete(ctx context.Context, key string, expected meta.Revision) error {
	time.Sleep(10 * time.Millisecond)
	return s.Store.Delete(ctx, key, expected)
}

// A topic with thousands of subscriptions is deleted in one go, on a slow disk too.
func TestDeletionOfThousandsOnASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		k := y.open(t, Config{})
		its := mustTopic(t, k, "orders")
		made := mustCreate(t, k, topic("orders"), "sub-0", hook(example))
		for i := 1; i < 8000; i++ {
			made.Name, made.ID = fmt.Sprintf("sub-%d", i), newID()
			r := &record{Subscription: made}
			if _, err := y.store.CompareAndSet(t.Context(), r.key(), 0, encode(r)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		k = y.open(t, Config{Meta: slowStore{y.store}})
		testkit.Check(t, k.DeleteTopic(t.Context(), "orders"))
		if took := time.Since(began); took > finishTimeout/2 {
			t.Errorf("it took %v", took)
		}
		expectNothingOf(t, y, its, []string{LogOf(&its).Log})
	})
}
