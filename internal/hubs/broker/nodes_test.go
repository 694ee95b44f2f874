package broker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// running is a broker that follows the others until stop.
func running(t *testing.T, b *Broker) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run ended with %v", err)
		}
	}
}

// H1, H2: what one node does to hubs the other sees, at once and without being asked.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		a, b := y.open(t), y.open(t)
		defer running(t, a)()
		defer running(t, b)()

		mustCreate(t, a, "Orders", 2)
		synctest.Wait()
		if p := mustPublish(t, b, "orders", Target{Partition: "1"}, "from b"); p.First != 0 {
			t.Errorf("got %+v", p)
		}
		if got := readAll(t, a, "orders"); !slices.Equal(got[1], []string{"from b"}) {
			t.Errorf("a reads %q", got)
		}

		if _, err := b.UpdateHub(t.Context(), "orders", HubChange{Age: new(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.CreateGroup(t.Context(), "orders", "billing"); err != nil {
			t.Fatal(err)
		}
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
	b := open(t, Config{Engine: y.engine, Meta: closingStore{y.store}})
	if err := b.Run(t.Context()); err == nil {
		t.Error("no error")
	}
}

type closingStore struct{ meta.Store }

func (closingStore) Watch(context.Context, string) (meta.Watcher, error) { return closedWatcher{}, nil }

type closedWatcher struct{}

func (closedWatcher) Next() ([]meta.Change, error) { return nil, meta.ErrClosed }

// H1: starting and stopping while hubs come and go leaves every node with the truth.
func TestRunStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		nodes := []*Broker{y.open(t), y.open(t)}
		for round := range 30 {
			stop := []func(){running(t, nodes[0]), running(t, nodes[1])}
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
			defer running(t, b)()
		}
		synctest.Wait()
		want := names(y.open(t).Hubs())
		for i, b := range nodes {
			testkit.Slices(t, names(b.Hubs()), want, "node %d knows", i)
		}
	})
}
