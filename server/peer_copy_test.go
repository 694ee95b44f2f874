package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// peersFor makes bundles, and gives where each peer keeps what it has.
func peersFor(t *testing.T) (at []Location) {
	t.Helper()
	var addresses []string
	for range 3 {
		l := testkit.Value(net.Listen("tcp", net.JoinHostPort(parts.OwnLoopback(), "0")))(t)
		defer l.Close() // all are open at once, so that they differ
		addresses = append(addresses, l.Addr().String())
		testkit.Must(t, l.Close())
	}
	made := testkit.Value(NewBundles(filepath.Join(t.TempDir(), "bundles"), "shop", strings.Join(addresses, ",")))(t)
	for _, p := range made {
		at = append(at, Location{DataDir: filepath.Join(t.TempDir(), "data"), Peer: Peer{Bundle: testkit.Value(ReadBundle(p.File))(t)}})
	}
	return at
}

// copyBeside copies while the servers of some peers run without nodes.
func copyBeside(t *testing.T, beside []Location, from, to Location) Copied {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var lending sync.WaitGroup
	for _, one := range beside {
		lending.Go(func() { testkit.Check(t, TakePart(ctx, one, "test", testkit.Quiet(), func() {})) })
	}
	copied, err := Copy(t.Context(), Copying{From: from, To: to, Version: "test", Log: testkit.Quiet()})
	stop()
	lending.Wait()
	testkit.Must(t, err)
	return copied
}

// wantEvents looks for events, first to last, in each partition of hub orders.
func (r *running) wantEvents(partitions, last int) {
	r.t.Helper()
	for p := range partitions {
		answer := r.want(http.StatusOK, "GET", fmt.Sprintf("/api/v1/hubs/orders/partitions/%d/events", p), "")
		for n := range last + 1 {
			testkit.That(r.t, strings.Contains(answer, fmt.Sprintf(`"event %d of %d"`, n, p)), "partition %d lacks event %d: %s", p, n, answer)
		}
	}
}

// C7, C8: a yard of a folder is copied to servers inside the nodes while the other peers take part, and each of its
// nodes has the events that it had. A copy from there, beside the servers of the others, has them all.
func TestCopyToPeersAndBack(t *testing.T) {
	natstest.NeedsNoDetector(t)
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 2}}
	if onEngine(t, cfg).Engine != "" {
		t.Skip("it is copied from a folder")
	}
	one := start(t, cfg)
	for p := range 2 {
		one.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events",
			fmt.Sprintf(`{"events":[{"body":"event 0 of %d"},{"body":"event 1 of %[1]d"}],"partition":"%[1]d"}`, p))
	}
	one.shutdown()
	at := peersFor(t)
	copied := copyBeside(t, at[1:], Location{DataDir: cfg.DataDir}, at[0])

	nodes := make([]*running, len(at))
	var starting sync.WaitGroup
	for i, one := range at {
		starting.Go(func() {
			nodes[i] = start(t, Config{
				Log: testkit.Quiet(), DataDir: one.DataDir, Peer: one.Peer, HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off,
			})
		})
	}
	starting.Wait()
	for _, r := range nodes {
		r.wantEvents(2, 1)
	}
	for p, r := range nodes[:2] {
		r.want(http.StatusCreated, "POST", "/api/v1/hubs/orders/events", fmt.Sprintf(`{"events":[{"body":"event 2 of %d"}],"partition":"%[1]d"}`, p))
	}
	var stopping sync.WaitGroup
	for _, r := range nodes {
		stopping.Go(r.shutdown)
	}
	stopping.Wait()

	folder := filepath.Join(t.TempDir(), "back")
	back := copyBeside(t, at[1:], at[0], Location{DataDir: folder})
	testkit.That(t, back.Events >= copied.Events+2, "%d events were copied there, and %d back", copied.Events, back.Events)
	start(t, Config{Log: testkit.Quiet(), DataDir: folder, HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off, Kafka: Off, Kafkas: Off}).wantEvents(2, 2)
}

// C7: nothing is begun in a folder that holds no peer's data, to copy from there.
func TestCopyFromPeersWithoutAYard(t *testing.T) {
	at := peersFor(t)
	_, err := Copy(t.Context(), Copying{From: at[0], To: Location{DataDir: filepath.Join(t.TempDir(), "to")}, Version: "test", Log: testkit.Quiet()})
	testkit.ErrorIs(t, err, ErrNoYard)
	found, _ := filepath.Glob(filepath.Join(at[0].DataDir, "*"))
	testkit.Equal(t, len(found), 0, "files in a folder that was empty")
}
