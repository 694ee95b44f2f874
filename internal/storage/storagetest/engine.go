package storagetest

import (
	"crypto/rand"
	"log/slog"
	"strconv"
	"testing"

	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
)

// fillers are those of the forms that tests of services append.
var fillers = func() logs.Fillers {
	all := logs.Fillers(record.Fillers())
	all[logtest.FormOpaque] = logtest.Opaque(1, "").Place
	return all
}()

// OverServers tells whether storage is on real servers, whose pace is no measure of ours.
func OverServers() bool { return testengine.OverServers() }

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
	testengine.Begin(t, yard)
	return func(t testing.TB) node {
		storage, entries := openStreams(t, yard), openEntries(t, yard, log)
		return node{entries, func(testing.TB) eventlog.Engine {
			return logs.New(logs.Config{Storage: storage, Store: entries, Fill: fillers, Replicas: replicas, Log: log})
		}}
	}
}
