// Package servertest gives a test a yard of its own: a real one, with nothing mocked, in a folder
// that goes with the test.
//
//	func TestBilling(t *testing.T) {
//		yard := servertest.Start(t)
//		yard.Hub(t, "orders", 4)
//		client := yard.Dial(t)
//		…
//	}
//
// It has no open listeners and is reached inside the process, unless the test asks for listeners by
// passing Listeners. What it stores is as durable as the process, not as the machine: tests need
// not wait for a disk.
//
// With EVENTYARD_TEST_ENGINE=nats in the environment it is a node of a yard of its own on the NATS
// servers that EVENTYARD_TEST_NATS names (nats://HOST:PORT,HOST:PORT), which goes with the test as well.
package servertest

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/server"
)

// Yard is a running yard.
type Yard struct {
	// Server is the yard itself.
	*server.Server
	// Config is what it was started with.
	Config server.Config

	stop context.CancelFunc
	// done is closed when Run has returned; err is set before.
	done chan struct{}
	err  error
}

// Listeners opens every listener, each on a free port of loopback, for clients that want a network.
// The yard's Addresses and ConnectionString tell where.
func Listeners(cfg *server.Config) {
	cfg.AMQP, cfg.AMQPS, cfg.HTTP, cfg.HTTPS, cfg.Kafka, cfg.Kafkas = anyPort, anyPort, anyPort, anyPort, anyPort, anyPort
}

// anyPort is a free one of loopback.
const anyPort = "127.0.0.1:0"

// Start runs a yard until the test ends. Each change is made to its configuration before:
// Listeners, or one of the test's own.
func Start(t testing.TB, changes ...func(*server.Config)) *Yard {
	t.Helper()
	cfg := server.Config{
		DataDir: filepath.Join(t.TempDir(), "yard"), Sync: "os", SegmentBytes: 4 << 20,
		AMQP: server.Off, AMQPS: server.Off, HTTP: server.Off, HTTPS: server.Off, Kafka: server.Off, Kafkas: server.Off,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, change := range changes {
		change(&cfg)
	}
	if engine, key := testengine.Yard(t, cfg.DataDir); engine != "" && cfg.Engine == "" {
		cfg.Engine = engine
		if cfg.Secrets == (server.Secrets{}) {
			cfg.Secrets.Key = key
		}
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	y := &Yard{Server: s, Config: cfg, stop: stop, done: make(chan struct{})}
	go y.run(ctx)
	t.Cleanup(func() { y.Stop(t) })
	select {
	case <-s.Started():
	case <-y.done:
		t.Fatalf("the yard did not start: %v", y.err)
	}
	return y
}

func (y *Yard) run(ctx context.Context) {
	defer close(y.done)
	y.err = y.Run(ctx)
}

// Stop ends the yard before the test does: it returns when everything is closed. Another may be
// started on its folder. Safe twice.
func (y *Yard) Stop(t testing.TB) {
	t.Helper()
	y.stop()
	<-y.done
	if y.err != nil {
		t.Errorf("the yard ended with: %v", y.err)
	}
}

// Dial gives a client with all rights that ends with the test. Each change is made to its
// configuration before.
func (y *Yard) Dial(t testing.TB, changes ...func(*hub.Config)) *hub.Client {
	t.Helper()
	cfg := hub.Config{Name: t.Name(), Log: y.Config.Log}
	for _, change := range changes {
		change(&cfg)
	}
	client, err := y.Server.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Hub sees to it that there is a hub with so many partitions, and groups besides $Default.
func (y *Yard) Hub(t testing.TB, name string, partitions int, groups ...string) {
	t.Helper()
	if err := y.EnsureHub(t.Context(), server.Hub{Name: name, Partitions: partitions, Groups: groups}); err != nil {
		t.Fatal(err)
	}
}

// ConnectionString lets clients of any kind in, with all rights. It leads to a listener, so that it
// is of use only where the test asked for Listeners.
func (y *Yard) ConnectionString() string { return y.Access().ConnectionString }
