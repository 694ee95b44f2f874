package local

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/eventhubs"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/pipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard has its hubs in two ways: here, and over AMQP.
type yard struct {
	t      *testing.T
	meta   meta.Store
	engine *logtest.Faulty
	broker *broker.Broker
	groups *groups.Registry
	local  functions.Namespace
	dialed functions.Namespace
	log    *slog.Logger
}

// inBubble runs a test with a yard that has a hub orders with two partitions.
func inBubble(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := openYard(t)
		y.dial()
		test(t, y)
	})
}

// openYard opens one without a listener.
func openYard(t *testing.T) *yard {
	t.Helper()
	hubs := hubstest.Open(t, storagetest.Config{SegmentBytes: 1 << 20, Sync: disk.OS})
	return openYardOf(t, hubs, hubs.Broker)
}

// openYardOf is openYard with a broker of its own.
func openYardOf(t *testing.T, hubs *hubstest.Yard, b *broker.Broker) *yard {
	t.Helper()
	y := &yard{t: t, log: testkit.Quiet(), meta: hubs.Memory, engine: hubs.Engine, broker: b}
	var err error
	y.groups, err = groups.New(groups.Config{Meta: y.meta, Broker: y.broker, Log: y.log})
	testkit.Must(t, err)
	y.hub("orders", 2)
	y.local = New(y.broker, y.log)
	return y
}

// dial lets the yard be reached over AMQP, by a pipe.
func (y *yard) dial() {
	t := y.t
	created := func(name string) (time.Time, bool) {
		h, err := y.broker.Hub(name)
		return h.Created, err == nil
	}
	registry, err := access.Open(t.Context(), access.Config{Meta: y.meta, Hub: created, Development: true, Log: y.log})
	testkit.Must(t, err)
	handler, err := eventhubs.New(eventhubs.Config{Broker: y.broker, Access: registry, Groups: y.groups, Log: y.log})
	testkit.Must(t, err)
	s, err := amqp.New(amqp.Config{Handler: handler, Auth: handler, Log: y.log})
	testkit.Must(t, err)
	listener := pipe.NewListener("yard")
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(ctx, listener) })
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	root := auth.ConnectionString{Endpoint: "sb://yard/", Policy: auth.RootPolicy, Key: auth.DevelopmentKey, Emulator: true}
	client, err := hub.Dial(t.Context(), root.String(), hub.Config{
		Log: y.log, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) },
	})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, client.Close()) })
	y.dialed = functions.Dialed(client)
}

// bothWays runs a test with each way first and each second, in a yard of its own.
func bothWays(t *testing.T, test func(t *testing.T, y *yard, one, other functions.Namespace)) {
	t.Helper()
	for way, name := range []string{"here, then here", "here, then over AMQP", "over AMQP, then here", "over AMQP, then over AMQP"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, y *yard) {
				spaces := []functions.Namespace{y.local, y.dialed}
				test(t, y, spaces[way/2], spaces[way%2])
			})
		})
	}
}

func (y *yard) hub(name string, partitions int) {
	y.t.Helper()
	_, err := y.broker.EnsureHub(y.t.Context(), broker.HubConfig{Name: name, Partitions: partitions}, nil)
	testkit.Must(y.t, err)
}

// store publishes events as they stand, in one batch.
func (y *yard) store(name, partition string, events ...event.Event) {
	y.t.Helper()
	batch := make([]eventlog.Event, len(events))
	for i, ev := range events {
		encoded, err := message.Append(nil, ev)
		testkit.Must(y.t, err)
		batch[i] = eventlog.Event{Message: encoded}
		if ev.Key != "" {
			batch[i].Key = []byte(ev.Key)
		}
	}
	_, err := y.broker.Publish(y.t.Context(), name, broker.Target{Partition: partition}, batch)
	testkit.Must(y.t, err)
}

func (y *yard) texts(partition string, texts ...string) {
	y.t.Helper()
	for _, text := range texts {
		y.store("orders", partition, event.Text(text))
	}
}

func (y *yard) open(space functions.Namespace, cfg hub.ReadConfig) hub.Reader {
	y.t.Helper()
	r, err := space.Hub("orders").Open(y.t.Context(), cfg)
	testkit.Must(y.t, err)
	y.t.Cleanup(func() { testkit.Must(y.t, r.Close(context.Background())) })
	return r
}

// read gives n events.
func read(t *testing.T, r hub.Reader, n int) (events []event.Event) {
	t.Helper()
	for len(events) < n {
		var err error
		events, err = r.Next(t.Context(), events, n-len(events))
		testkit.Must(t, err)
	}
	return events
}

// fail makes the next reads fail, one for each error.
func (y *yard) fail(errs ...error) {
	var mu sync.Mutex
	y.engine.Inject(func(op logtest.Op) (err error) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == logtest.OpNext && len(errs) > 0 {
			err, errs = errs[0], errs[1:]
		}
		return err
	})
}
