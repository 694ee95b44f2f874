package storagetest

import (
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
)

// The engines that tests can have.
const onDisk, onModel, onNATS = "disk", "model", "nats"

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

// OverServers tells whether storage is on real servers, whose pace is no measure of ours.
func OverServers() bool { return chosen() == onNATS }

// NoServers is why tests in bubbles are skipped.
const NoServers = "the clock of a bubble does not wait for servers"

// NeedsBubble skips a test whose storage is in a bubble of testing/synctest where it would be over
// servers. Open does so in the bubble itself; this is for who judges bubbles from outside.
func NeedsBubble(t testing.TB) {
	t.Helper()
	if OverServers() {
		t.Skip(NoServers + ": EVENTYARD_TEST_ENGINE=model has this test")
	}
}

// inBubble tells whether the test is in a bubble of testing/synctest, where it is always about the
// beginning of the year 2000.
func inBubble() bool { return time.Now().Year() < 2010 }

// node is what a process of a yard has: its entries, and what opens its engine, each time on the same
// streams.
type node struct {
	meta meta.Store
	open func(testing.TB) eventlog.Engine
}

// onSimulated gives what adds a node to a yard over simulated servers, with entries in memory.
func onSimulated(log *slog.Logger) func(testing.TB) node {
	servers, entries, nodes := model.New(1, model.Faults{}), metatest.NewMemory(), 0
	return func(testing.TB) node {
		nodes++
		storage := servers.Node(strconv.Itoa(nodes))
		return node{entries, func(testing.TB) eventlog.Engine {
			return logs.New(logs.Config{Storage: storage, Store: entries, Fill: fillers, Replicas: replicas, Log: log})
		}}
	}
}

// onServers gives what adds a node to a yard over the servers that the environment names.
func onServers(t testing.TB, log *slog.Logger) func(testing.TB) node {
	t.Helper()
	yard := rand.Text()
	t.Cleanup(func() { removeStreams(t, yard) })
	return func(t testing.TB) node {
		storage, entries := openStreams(t, yard), openEntries(t, yard, log)
		return node{entries, func(testing.TB) eventlog.Engine {
			return logs.New(logs.Config{Storage: storage, Store: entries, Fill: fillers, Replicas: replicas, Log: log})
		}}
	}
}
