// Package storagetest gives tests both contracts of storage: the real engine on a file system in
// memory, and a meta store in memory, each behind a double that fails when it is told to.
//
//	s := storagetest.Open(t, storagetest.Config{})
//	b, err := broker.Open(t.Context(), broker.Config{Engine: s.Engine, Meta: s.Meta})
//	s.Meta.Inject(func(op metatest.Op) error { … })      // until Inject nothing fails
//	s.Engine.Fail(eventlog.ErrNoSpace, logtest.OpSubmit)
//	s.Restart(t)                                         // another engine on the same files
//
// Tests that want a broker as well take hubstest, which stands on this.
//
// EVENTYARD_TEST_ENGINE chooses the engine; see package testengine. With nats the servers have the
// entries, too. A test that brings a file system of its own is then skipped, and so is one in a bubble of
// testing/synctest: a bubble's clock does not wait for a network.
package storagetest

import (
	"cmp"
	"crypto/rand"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/bodies"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Storage is what services keep events and entries in.
type Storage struct {
	// Engine is over the engine that runs now, Meta over Memory.
	Engine *logtest.Faulty
	Meta   *metatest.Faulty
	// Memory is the meta store without the double: what a test changes here is counted nowhere. With
	// nats it is one over servers.
	Memory meta.Store

	open func(testing.TB) eventlog.Engine
	join func(testing.TB) node
}

// Config is that of the engine.
type Config = disk.Config

// Open opens storage until the test ends. What cfg leaves out is for tests: files in memory,
// segments of 64 KiB, a log that nobody reads.
func Open(t testing.TB, cfg Config) *Storage {
	t.Helper()
	cfg.Log = cmp.Or(cfg.Log, testkit.Quiet())
	join := chooseNodes(t, &cfg)
	first := join(t)
	s := &Storage{Memory: first.meta, Meta: metatest.NewFaulty(first.meta), open: first.open, join: join}
	s.start(t)
	if cfg.FS != nil {
		others := logtest.NewNodes(s.Engine)
		s.join = func(testing.TB) node { return node{first.meta, others.Open} }
	}
	return s
}

// chooseNodes gives what adds a node to a yard on the engine that the environment asks for; with a file
// system there can be only one.
func chooseNodes(t testing.TB, cfg *Config) func(testing.TB) node {
	t.Helper()
	if cfg.FS != nil {
		testengine.NeedsFiles(t)
	}
	switch engine := testengine.Chosen(); {
	case engine == testengine.Disk || cfg.FS != nil:
		if cfg.FS == nil {
			cfg.FS = vfs.NewMem()
		}
		cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, 64<<10)
		return func(testing.TB) node {
			return node{metatest.NewMemory(), func(t testing.TB) eventlog.Engine { return openDisk(t, *cfg) }}
		}
	case engine == testengine.Model:
		return onSimulated(cfg.Log)
	}
	return onServers(t, cfg.Log)
}

func openDisk(t testing.TB, cfg Config) eventlog.Engine {
	t.Helper()
	engine, err := disk.Open(cfg)
	testkit.Must(t, err)
	return engine
}

// Restart closes the engine and opens another on the same files. The entries stay.
func (s *Storage) Restart(t testing.TB) {
	t.Helper()
	testkit.Must(t, s.Engine.Close())
	s.start(t)
}

func (s *Storage) start(t testing.TB) {
	t.Helper()
	engine := s.open(t)
	t.Cleanup(func() { testkit.Check(t, engine.Close()) })
	s.Engine = logtest.NewFaulty(engine)
}

// Node gives other doubles over the same storage: what is injected there concerns nobody else.
func (s *Storage) Node() *Storage {
	return &Storage{Engine: logtest.NewFaulty(s.Engine), Meta: metatest.NewFaulty(s.Memory), Memory: s.Memory, open: s.open, join: s.join}
}

// Join gives the storage as another process has it, with an engine of its own until the test ends.
// On disk, where there can be only one, that is a double; see logtest.Nodes. Who joins did not see
// what was stored before by an engine that was not one of the nodes.
func (s *Storage) Join(t testing.TB) *Storage {
	t.Helper()
	other := s.join(t)
	engine := other.open(t)
	t.Cleanup(func() { testkit.Check(t, engine.Close()) })
	return &Storage{Engine: logtest.NewFaulty(engine), Meta: metatest.NewFaulty(other.meta), Memory: other.meta, open: other.open, join: s.join}
}

// Entries gives a meta store alone, until the test ends: one in memory, or with nats one over servers,
// without doubles.
func Entries(t testing.TB) meta.Store {
	t.Helper()
	if !OverServers() {
		return metatest.NewMemory()
	}
	yard := rand.Text()
	testengine.Begin(t, yard)
	return openEntries(t, yard, testkit.Quiet())
}

// Bodies gives bodies of blobs on servers, until the test ends; nil unless storage is there.
func Bodies(t testing.TB) *bodies.Store {
	t.Helper()
	if !OverServers() {
		return nil
	}
	yard := rand.Text()
	testengine.Begin(t, yard)
	s := bodies.New(testengine.Dial(t), testengine.Dial(t), bodies.Config{Yard: yard, Replicas: replicas})
	testkit.Must(t, s.Load(t.Context()))
	return s
}

// Events makes an event of each message.
func Events(messages ...string) []eventlog.Event {
	events := make([]eventlog.Event, len(messages))
	for i, m := range messages {
		events[i].Message = []byte(m)
	}
	return events
}

// ReadAll gives the messages from where a cursor stands to the end, and closes it.
func ReadAll(t testing.TB, c eventlog.Cursor) (messages []string) {
	t.Helper()
	defer c.Close()
	for {
		run, err := c.TryNext(t.Context())
		testkit.Must(t, err)
		if len(run.Events) == 0 {
			return messages
		}
		for _, e := range run.Events {
			messages = append(messages, string(e.Message))
		}
	}
}
