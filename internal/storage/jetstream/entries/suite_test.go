package entries

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// open gives a store that runs and is loaded, until the test ends.
func open(t testing.TB, conn *nats.Conn, cfg Config) *Store {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = testkit.Quiet()
	}
	s, err := New(conn, cfg)
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-ended, "run")
	})
	testkit.Must(t, s.Load(t.Context()))
	return s
}

// tidy has a store keep gaps few until the test ends.
func tidy(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Tidy(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-ended, "tidy")
	})
}

// yard is a config of a new yard, whose streams are deleted when the test ends.
func yard(t testing.TB, servers *natstest.Servers) Config {
	cfg := Config{Yard: natstest.Yard(), Replicas: servers.Replicas, Buckets: 2}
	conn := servers.Dial(t, 0)
	t.Cleanup(func() {
		js, err := jetstream.New(conn)
		testkit.Check(t, err)
		l := layout{cfg.Yard, cfg.Buckets}
		for _, name := range l.buckets() {
			if err := js.DeleteStream(context.Background(), l.stream(name)); err != nil && err != jetstream.ErrStreamNotFound {
				t.Logf("delete stream: %v", err)
			}
		}
	})
	return cfg
}

// C1, C2: the contract, with one server and with three.
func TestContract(t *testing.T) {
	for what, n := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(what, func(t *testing.T) {
			servers := natstest.Shared(t, n)
			metatest.Run(t, func(t *testing.T) meta.Store {
				return open(t, servers.Dial(t, 0), yard(t, servers))
			})
			metatest.RunDurable(t, func(t *testing.T) (meta.Store, func() meta.Store) {
				cfg := yard(t, servers)
				s := open(t, servers.Dial(t, 0), cfg)
				return s, func() meta.Store {
					testkit.Must(t, s.Close())
					s = open(t, servers.Dial(t, 0), cfg)
					return s
				}
			})
			metatest.RunNodes(t, func(t *testing.T) (here, there meta.Store) {
				cfg := yard(t, servers)
				return open(t, servers.Dial(t, 0), cfg), open(t, servers.Dial(t, n-1), cfg)
			})
		})
	}
}
