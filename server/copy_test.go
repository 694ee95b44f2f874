package server

import (
	"context"
	"fmt"
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
	cutCopy(t, Copying{From: Location{DataDir: cfg.DataDir}, To: there, Log: testkit.Quiet()}, 10, 40, 1_000_000)
	copied, err := Copy(t.Context(), Copying{
		From: Location{DataDir: cfg.DataDir}, To: there, Log: testkit.Quiet(), Progress: func(bytes int64) { progress = bytes },
	})
	testkit.Must(t, err)
	testkit.That(t, copied.Events >= 42 && copied.Bodies == 1 && len(copied.Lost) == 0 && progress > 1_000_000, "copied %+v, %d bytes", copied, progress)
	testkit.That(t, 0 < copied.Found && copied.Found <= copied.Events, "%d events were there already", copied.Found)
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
	home := Copying{From: there, To: Location{DataDir: back.DataDir}, Log: testkit.Quiet()}
	cutCopy(t, home, 10, 1_000_000)
	copied, err = Copy(t.Context(), home)
	testkit.Must(t, err)
	testkit.That(t, copied.Found > 0, "%d events were there already", copied.Found)
	m.goesOn(start(t, back), "second")
	missing := Location{Engine: strings.Replace(node.Engine, "yard=", "yard=x", 1), Secrets: node.Secrets}
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: missing, To: Location{DataDir: t.TempDir()}, Log: testkit.Quiet()})), ErrNoYard)
	testkit.ErrorIs(t, testkit.Err(Copy(t.Context(), Copying{From: Location{DataDir: t.TempDir()}, To: there, Log: testkit.Quiet()})), ErrNoYard)
}

// cutCopy begins a copy once for each of some numbers of bytes, and has it end when so many were read.
func cutCopy(t *testing.T, c Copying, after ...int64) {
	t.Helper()
	for _, bytes := range after {
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = func(read int64) {
			if read >= bytes {
				cancel()
			}
		}
		testkit.ErrorIs(t, testkit.Err(Copy(ctx, c)), context.Canceled)
		cancel()
	}
}

// C7: what a copy of another yard has left is not mixed with this one: it goes.
func TestACopyOverWhatAnotherHasLeft(t *testing.T) {
	testengine.NeedsFiles(t)
	var yards [2]Config
	for i := range yards {
		yards[i] = quick(t)
		r := start(t, yards[i])
		r.want(201, "POST", "/api/v1/hubs", `{"name":"orders","partitions":1}`)
		r.want(201, "POST", "/api/v1/hubs/orders/events", fmt.Sprintf(`[{"body":"of %d"}]`, i))
		r.shutdown()
	}
	to := quick(t)
	first := Copying{From: Location{DataDir: yards[0].DataDir}, To: Location{DataDir: to.DataDir}, Log: testkit.Quiet()}
	ctx, cancel := context.WithCancel(t.Context())
	all, calls := 0, 0
	measured := first
	measured.To, measured.Progress = Location{DataDir: t.TempDir()}, func(int64) { all++ }
	testkit.Must(t, testkit.Err(Copy(t.Context(), measured)))
	first.Progress = func(int64) {
		if calls++; calls == all {
			cancel() // all but the check
		}
	}
	testkit.ErrorIs(t, testkit.Err(Copy(ctx, first)), context.Canceled)
	copied, err := Copy(t.Context(), Copying{From: Location{DataDir: yards[1].DataDir}, To: Location{DataDir: to.DataDir}, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Equal(t, copied.Found, 0, "events that were kept")
	events := start(t, to).events("orders")
	testkit.That(t, len(events) == 1 && strings.Contains(fmt.Sprint(events), "of 1"), "it has %v", events)
}
