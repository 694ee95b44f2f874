// Package testengine is what the environment says of the storage that tests have.
//
// EVENTYARD_TEST_ENGINE chooses the engine: disk, which is the default; model, that of several nodes
// over simulated servers; nats, the same over the servers that EVENTYARD_TEST_NATS names. Package
// storagetest opens it for the tests of services, package servertest starts whole yards on it.
package testengine

import (
	"os"
	"testing"
	"time"
)

// The engines that tests can have.
const (
	Disk  = "disk"
	Model = "model"
	NATS  = "nats"
)

// Chosen is the engine that the environment asks for.
func Chosen() string {
	switch engine := os.Getenv("EVENTYARD_TEST_ENGINE"); engine {
	case "", Disk:
		return Disk
	case Model, NATS:
		return engine
	default:
		panic("EVENTYARD_TEST_ENGINE is " + engine + ": use disk, model or nats")
	}
}

// OverServers tells whether storage is on real servers, whose pace is no measure of ours.
func OverServers() bool { return Chosen() == NATS }

// What tests say of their storage where it would be on servers. Package suites counts them by it.
const (
	// OnServers is said by a test whose storage is there.
	OnServers = "storage is on servers"
	// NoServers is why tests in bubbles are skipped.
	NoServers = "the clock of a bubble does not wait for servers"
	// Files is why tests of files are skipped.
	Files = "it is about files"
	// Later is why tests of trimmed logs are skipped.
	Later = "servers trim logs later"
)

// NeedsBubble skips a test whose storage is in a bubble of testing/synctest where it would be over
// servers. Who opens storage does so in the bubble itself; this is for who judges bubbles from outside.
func NeedsBubble(t testing.TB) {
	t.Helper()
	skip(t, NoServers+": EVENTYARD_TEST_ENGINE=model has this test")
}

// NeedsFiles skips a test that is about the files of one machine where storage would be over servers.
func NeedsFiles(t testing.TB) {
	t.Helper()
	skip(t, Files)
}

// NeedsTrim skips a test of events that are gone as soon as they may be: servers remove them later.
func NeedsTrim(t testing.TB) {
	t.Helper()
	skip(t, Later)
}

func skip(t testing.TB, why string) {
	t.Helper()
	if OverServers() {
		t.Skip(why)
	}
}

// InBubble tells whether the test is in a bubble of testing/synctest, where it is always about the
// beginning of the year 2000.
func InBubble() bool { return time.Now().Year() < 2010 }
