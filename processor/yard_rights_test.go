package processor_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/servertest"
)

// severed is the store of a process that can be cut off from the yard.
type severed struct {
	processor.Store
	cut atomic.Bool
}

var errCut = errors.New("cut off")

func (s *severed) Claim(ctx context.Context, g processor.Group, l []processor.Lease) ([]processor.Lease, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.Store.Claim(ctx, g, l)
}

func (s *severed) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if s.cut.Load() {
		return f, errCut
	}
	return s.Store.Put(ctx, g, f)
}

func (s *severed) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if s.cut.Load() {
		return errCut
	}
	return s.Store.Remove(ctx, g, f)
}

// R1, H9, P1, P2, P3: instances of different processes, none of which knows another's secret, share
// a hub by the right to listen alone: they hand over, take what the dead held, and come back under
// the id that they had.
func TestInstancesOfDifferentProcessesShareAHub(t *testing.T) {
	yard := servertest.Start(t, servertest.Listeners, func(c *server.Config) { c.Policies = []server.Policy{listener} })
	yard.Hub(t, "orders", 4)
	orders := dialAs(t, yard, listener).Hub("orders")
	a, _, _ := startProcess(t, orders, "a", "the first process")
	testkit.Eventually(t, "a reads all", func() bool { return owned(a) == 4 })
	b, cut, stop := startProcess(t, orders, "b", "the second process")
	testkit.Eventually(t, "a hands over to b", func() bool { return owned(a) == 2 && owned(b) == 2 })
	cut.cut.Store(true) // b dies, to the yard
	testkit.Eventually(t, "a takes what b held", func() bool { return owned(a) == 4 })
	stop()
	b, _, _ = startProcess(t, orders, "b", "the third process")
	testkit.Eventually(t, "b is back", func() bool { return owned(a) == 2 && owned(b) == 2 })
}

// startProcess runs an instance in a process of its own, as far as the yard can tell.
func startProcess(t *testing.T, orders *hub.Hub, id, process string) (*processor.Processor, *severed, func()) {
	store := &severed{Store: processor.YardStoreOfProcess(orders, process)}
	p := processor.New(orders, processor.Config{ID: id, Store: store, Log: slog.New(slog.DiscardHandler),
		Lease: 3 * time.Second, Renew: time.Second, Poll: 100 * time.Millisecond, Stop: time.Second,
		OnError: func(err error) {
			if errors.Is(err, hub.ErrUnauthorized) {
				t.Errorf("%s: %v", id, err)
			}
		}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx, func(context.Context, *processor.Batch) error { return nil }); ctx.Err() == nil {
			t.Errorf("%s ended: %v", id, err)
		}
	}()
	stop := func() { cancel(); <-ended }
	t.Cleanup(stop)
	return p, store, stop
}

// R1, P3, F5: an instance that is alone, died and comes back under its id goes on when its leases
// have run out, whether its presence is still there or not, and with its count of failures.
func TestAnInstanceComesBackToAYard(t *testing.T) {
	t.Parallel()
	for what, present := range map[string]bool{"its presence is there": true, "only its leases are": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			yard := servertest.Start(t, servertest.Listeners, func(c *server.Config) { c.Policies = []server.Policy{listener} })
			yard.Hub(t, "orders", 2)
			orders := dialAs(t, yard, listener).Hub("orders")
			group := processor.Group{Hub: "orders", Group: "$Default"}
			a, first, stop := startProcess(t, orders, "a", "the first process")
			testkit.Eventually(t, "it reads all", func() bool { return owned(a) == 2 })
			tally := testkit.Value(first.Put(t.Context(), group, processor.Entry{Key: "failures/f/a", Value: []byte("{}")}))(t)
			first.cut.Store(true)
			stop()
			if !present {
				for _, f := range testkit.Value(first.Entries(t.Context(), group, "presence/"))(t) {
					testkit.Must(t, first.Store.Remove(t.Context(), group, f))
				}
			}
			a, second, _ := startProcess(t, orders, "a", "the second process")
			testkit.Eventually(t, "it is back", func() bool { return owned(a) == 2 })
			testkit.Must(t, testkit.Err(second.Put(t.Context(), group, tally)), "its count")
		})
	}
}

// R1: each yard, hub and group is shown another secret, and all requests of a process the same.
func TestYardSecrets(t *testing.T) {
	secrets := map[string]int{}
	ask := func(process, group string) {
		store := processor.YardStoreOf(func(c groupwire.Call) { secrets[c.Secret]++ }, process)
		_, _ = store.Leases(t.Context(), processor.Group{Hub: "h", Group: group})
	}
	ask("p", "$Default")
	ask("p", "$default")
	ask("p", "g")
	ask("q", "g")
	testkit.Equal(t, len(secrets), 3, "secrets %v", secrets)
	for s := range secrets {
		testkit.That(t, len(s) >= groupwire.MinSecretBytes && !strings.Contains(s, "p "), "the secret %q", s)
	}
}
