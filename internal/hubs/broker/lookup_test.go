package broker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/looks"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C3: what one node has created another finds at once, be its watch late.
func TestWhatAnotherNodeHasJustCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		a, b := f.members[0], f.members[1]
		hold := make(chan struct{})
		defer close(hold)
		var fresh atomic.Bool
		b.store.Inject(func(op metatest.Op) error {
			switch {
			case op.Kind == metatest.OpNext:
				return metatest.After(func(err error) error { <-hold; return err })
			case op.Kind == metatest.OpFresh && op.Under(groupsPrefix):
				fresh.Store(true)
			case op.Kind == metatest.OpGet && op.Under(groupsPrefix) && !fresh.Load():
				return meta.ErrNotFound
			}
			return nil
		})
		mustCreate(t, a.Broker, "before", 1) // from here on b hears nothing
		synctest.Wait()
		mustCreate(t, a.Broker, "after", 1, "billing")
		synctest.Wait()
		wantNotFound(t, testkit.Err(b.Hub("after")), KindHub, "without a look")
		testkit.Must(t, testkit.Err(b.LookUp(t.Context(), "After")))
		mustPublish(t, b.Broker, "after", Target{}, "x")
		testkit.Must(t, testkit.Err(b.Group(t.Context(), "after", "billing")))
		mustCreate(t, a.Broker, "third", 1)
		synctest.Wait()
		mustPublish(t, b.Broker, "third", Target{}, "x")
		wantNotFound(t, testkit.Err(b.LookUp(t.Context(), "never")), KindHub)
		wantNotFound(t, testkit.Err(b.Group(t.Context(), "after", "never")), KindGroup)
	})
}

// C3, C5: where the store is out of reach, nobody is told that there is no such hub or group: he is to try again.
func TestWhatCannotBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 1)
		m := f.members[0] // it has a hub orders
		m.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpFresh {
				return meta.ErrUnavailable
			}
			return nil
		})
		for i := range 2 * looks.Burst {
			testkit.MustErrorIs(t, testkit.Err(m.LookUp(t.Context(), "new")), meta.ErrUnavailable, "try %d", i)
			testkit.MustErrorIs(t, testkit.Err(m.Group(t.Context(), "orders", "new")), meta.ErrUnavailable, "try %d", i)
		}
		m.store.Inject(nil)
		time.Sleep(time.Minute)
		wantNotFound(t, testkit.Err(m.LookUp(t.Context(), "new")), KindHub)
		wantNotFound(t, testkit.Err(m.Group(t.Context(), "orders", "new")), KindGroup)
	})
}

// C3: names that nobody has made cost storage little, however often they are asked for.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 1)
		m := f.members[0]
		var asking sync.WaitGroup
		made := func() int { return m.store.Count(metatest.OpFresh) }
		before := made()
		for i := range 100 {
			asking.Go(func() { wantNotFound(t, testkit.Err(m.LookUp(t.Context(), fmt.Sprint("h", i))), KindHub) })
		}
		asking.Wait()
		testkit.Equal(t, made()-before, 1, "looks of those who ask at once")
		before, began := made(), time.Now()
		for i := range 1000 {
			wantNotFound(t, testkit.Err(m.LookUp(t.Context(), fmt.Sprint("h", i))), KindHub)
		}
		if most := looks.Burst + int(time.Since(began).Seconds()*looks.PerSecond) + 1; made()-before > most {
			t.Errorf("%d looks within %v", made()-before, time.Since(began))
		}
		wantNotFound(t, testkit.Err(m.LookUp(t.Context(), "no/name/")), KindHub)
	})
}

// C8: one machine knows all there is.
func TestOneMachineLooksNowhere(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	before := y.Meta.Count(metatest.OpFresh)
	wantNotFound(t, testkit.Err(b.LookUp(t.Context(), "orders")), KindHub)
	wantNotFound(t, testkit.Err(b.Publish(t.Context(), "orders", Target{}, events("x"))), KindHub)
	testkit.Equal(t, y.Meta.Count(metatest.OpFresh), before, "looks")
}

// C4: whether the hub of a log was deleted cannot be known while the store cannot be looked at: another node may have
// created it a moment ago.
func TestALogIsNotGoneWhileThatCannotBeKnown(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	testkit.That(t, LogGone(t.Context(), b, "unknown"), "it is called there")
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpFresh {
			return meta.ErrUnavailable
		}
		return nil
	})
	testkit.That(t, !LogGone(t.Context(), b, "unknown"), "it is called gone")
}
