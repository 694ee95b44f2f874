package server

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: a yard is copied from one machine to servers, with another secret key, where two nodes go on with
// it, and back.
func TestAYardMovesToServersAndBack(t *testing.T) {
	testengine.NeedsFiles(t)
	servers := natstest.Shared(t, 1)
	m, key := newMoving(t), sealed.NewKey()
	cfg := quick(t)
	cfg.HTTPS = "127.0.0.1:0" // for certificates
	r := start(t, cfg)
	m.make(r)
	m.leave(r, "first")
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: Location{DataDir: cfg.DataDir}, To: Location{DataDir: t.TempDir()}, Log: testkit.Quiet()})), ErrLocked, "while it is served")
	r.shutdown()
	m.moved()

	node := onYard(t, servers, natstest.Yard(), "a", key)
	var progress int64
	there := Location{Engine: node.Engine, Secrets: node.Secrets}
	copied, err := Copy(t.Context(), Copying{
		From: Location{DataDir: cfg.DataDir}, To: there, Log: testkit.Quiet(), Progress: func(bytes int64) { progress = bytes },
	})
	testkit.Must(t, err)
	testkit.That(t, copied.Events >= 42 && copied.Bodies == 1 && len(copied.Lost) == 0 && progress > 1_000_000, "copied %+v, %d bytes", copied, progress)
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: Location{DataDir: cfg.DataDir}, To: there, Log: testkit.Quiet()})), ErrYardOccupied, "again")
	other := node
	other.Node = "b"
	one, two := start(t, node), start(t, other)
	m.goesOn(one, "first")
	m.leave(two, "second")
	one.shutdown()
	two.shutdown()
	m.moved()

	back := quick(t)
	back.HTTPS = "127.0.0.1:0"
	_, err = Copy(t.Context(), Copying{From: there, To: Location{DataDir: back.DataDir}, Log: testkit.Quiet()})
	testkit.Must(t, err)
	m.goesOn(start(t, back), "second")
	missing := Location{Engine: strings.Replace(node.Engine, "yard=", "yard=x", 1), Secrets: node.Secrets}
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: missing, To: Location{DataDir: t.TempDir()}, Log: testkit.Quiet()})), ErrNoYard)
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: Location{DataDir: t.TempDir()}, To: there, Log: testkit.Quiet()})), ErrNoYard)
}
