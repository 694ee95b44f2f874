package storagetest

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/natsstreams"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// The engines that tests can have.
const onDisk, onModel, onNATS = "disk", "model", "nats"

// replicas is how many servers keep a stream: what is tested is what stands on it.
const replicas = 1

// fillers are those of the forms that tests of services append.
var fillers = logs.Fillers{logtest.FormOpaque: logtest.Opaque(1, "").Place}

// chosen is the engine that the environment asks for.
func chosen() string {
	switch engine := os.Getenv("EVENTYARD_TEST_ENGINE"); engine {
	case "", onDisk:
		return onDisk
	case onModel, onNATS:
		return engine
	default:
		panic("EVENTYARD_TEST_ENGINE is " + engine + ": use disk, model or nats")
	}
}

// inBubble tells whether the test is in a bubble of testing/synctest, where it is always about the
// beginning of the year 2000.
func inBubble() bool { return time.Now().Year() < 2010 }

// openNodes gives what adds a node to a yard, as what opens its engine, each time on the same streams.
func openNodes(t testing.TB, engine string, store meta.Store, log *slog.Logger) func() func(testing.TB) eventlog.Engine {
	t.Helper()
	servers, yard, nodes := model.New(1, model.Faults{}), rand.Text(), 0
	return func() func(testing.TB) eventlog.Engine {
		var storage streams.Storage
		if nodes++; engine == onModel {
			storage = servers.Node(strconv.Itoa(nodes))
		} else {
			storage = onServers(t, yard)
		}
		return func(testing.TB) eventlog.Engine {
			return logs.New(logs.Config{Storage: storage, Store: store, Fill: fillers, Replicas: replicas, Log: log})
		}
	}
}

// onServers connects to the servers that the environment names.
func onServers(t testing.TB, yard string) streams.Storage {
	t.Helper()
	url := os.Getenv("EVENTYARD_TEST_NATS")
	if url == "" {
		t.Fatal("EVENTYARD_TEST_NATS names no servers: make test-nats starts some")
	}
	conn := func() *nats.Conn {
		conn, err := nats.Connect(url, connect.Options()...)
		testkit.Must(t, err)
		t.Cleanup(conn.Close)
		return conn
	}
	storage, err := natsstreams.Open(natsstreams.Conns{Publish: conn(), Read: conn(), Control: conn()}, natsstreams.Config{Yard: yard, Replicas: replicas})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Check(t, storage.Close()) })
	return storage
}
