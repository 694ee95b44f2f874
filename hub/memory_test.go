package hub_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/eventhubs"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/pipe"
)

// memoryYard is the parts of a yard that a client sees, without sockets, so that they can
// run in a bubble of synctest, where hours pass in no time. It has the hub "h".
type memoryYard struct {
	listener *pipe.Listener
	broker   *broker.Broker
	log      *warnings
}

// memorySetup may be changed before the yard is opened.
type memorySetup struct {
	bearer access.TokenVerifier
	groups eventhubs.Groups
}

func startMemory(t *testing.T, s memorySetup) *memoryYard {
	t.Helper()
	y := &memoryYard{listener: pipe.NewListener("yard"), log: &warnings{Handler: slog.NewTextHandler(t.Output(), nil)}}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	parts := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 22, Log: log})
	y.broker = parts.Broker
	parts.Hub(t, "h", 1, "together", "forever", "fenced", "large", "g")
	created := func(name string) (time.Time, bool) {
		h, err := y.broker.Hub(name)
		return h.Created, err == nil
	}
	registry, err := access.Open(t.Context(), access.Config{Meta: parts.Meta, Hub: created, Development: true, Bearer: s.bearer, Log: log})
	testkit.Must(t, err)
	listener, err := eventhubs.New(eventhubs.Config{Broker: y.broker, Access: registry, Groups: s.groups, Log: log})
	testkit.Must(t, err)
	served, err := amqp.New(amqp.Config{Handler: listener, Auth: listener, Log: log})
	testkit.Must(t, err)
	testkit.Run(t, func(ctx context.Context) error { _ = served.Serve(ctx, y.listener); return nil })
	return y
}

// bubble runs a test in a bubble of synctest, with a yard in memory and a client of it.
func bubble(t *testing.T, s memorySetup, test func(t *testing.T, y *memoryYard, client *hub.Client)) {
	synctest.Test(t, func(t *testing.T) {
		y := startMemory(t, s)
		test(t, y, y.dial(t, development.String(), hub.Config{}))
	})
}

// development is who everybody knows the key of.
var development = auth.ConnectionString{
	Endpoint: "sb://yard/", Policy: auth.RootPolicy, Key: auth.DevelopmentKey, Emulator: true,
}

func (y *memoryYard) dial(t *testing.T, connectionString string, cfg hub.Config) *hub.Client {
	t.Helper()
	cfg.Log = slog.New(y.log)
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return y.listener.Dial(ctx) }
	}
	client, err := hub.Dial(t.Context(), connectionString, cfg)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, client.Close()) })
	return client
}

// warnings counts what a client had to carry on from.
type warnings struct {
	slog.Handler
	count atomic.Int64
}

func (w *warnings) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		w.count.Add(1)
	}
	return w.Handler.Handle(ctx, r)
}
