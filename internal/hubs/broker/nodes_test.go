package broker

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H1, H2: what one node does to hubs the other sees, at once and without being asked.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		a, b := y.open(t), y.open(t)
		defer testkit.Run(t, a.Run)()
		defer testkit.Run(t, b.Run)()

		mustCreate(t, a, "Orders", 2)
		synctest.Wait()
		if p := mustPublish(t, b, "orders", Target{Partition: "1"}, "from b"); p.First != 0 {
			t.Errorf("got %+v", p)
		}
		if got := readAll(t, a, "orders"); !slices.Equal(got[1], []string{"from b"}) {
			t.Errorf("a reads %q", got)
		}

		testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Minute)})))
		testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", "billing")))
		synctest.Wait()
		if h := must(a.Hub("orders")); h.Retention.Age != time.Minute {
			t.Errorf("a knows %+v", h)
		}
		if got := groupNames(t, a, "orders"); len(got) != 2 {
			t.Errorf("a knows groups %q", got)
		}

		testkit.Must(t, a.DeleteHub(t.Context(), "orders"))
		synctest.Wait()
		expectGone(t, b, "orders")

		mustCreate(t, b, "orders", 1)
		synctest.Wait()
		if p := mustPublish(t, a, "ORDERS", Target{}, "new"); p.First != 0 || p.Partition != "0" {
			t.Errorf("got %+v", p)
		}
		if got := readAll(t, b, "orders"); len(got) != 1 || !slices.Equal(got[0], []string{"new"}) {
			t.Errorf("b reads %q", got)
		}
	})
}

// A watch that fails is reported, not passed over.
func TestRunReportsALostWatch(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpNext {
			return meta.ErrClosed
		}
		return nil
	})
	testkit.ErrorIs(t, b.Run(t.Context()), meta.ErrClosed)
}

// H1: starting and stopping while hubs come and go leaves every node with the truth.
func TestRunStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		nodes := []*Broker{y.open(t), y.open(t)}
		for round := range 30 {
			stop := []func(){testkit.Run(t, nodes[0].Run), testkit.Run(t, nodes[1].Run)}
			name := string(rune('a' + round%5))
			for _, b := range nodes {
				go b.CreateHub(t.Context(), HubConfig{Name: name, Partitions: 1})
				go b.DeleteHub(t.Context(), name)
			}
			if round%3 == 0 {
				synctest.Wait()
			}
			stop[0]()
			stop[1]()
		}
		synctest.Wait()
		for _, b := range nodes {
			defer testkit.Run(t, b.Run)()
		}
		synctest.Wait()
		want := names(y.open(t).Hubs())
		for i, b := range nodes {
			testkit.Slices(t, names(b.Hubs()), want, "node %d knows", i)
		}
	})
}
