package server

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// C7, C8: a yard of a folder is copied to servers inside the nodes while the other peers take part, and its nodes
// have what it had.
func TestCopyToPeers(t *testing.T) {
	cfg := quick(t)
	cfg.Hubs = []Hub{{Name: "orders", Partitions: 2}}
	if onEngine(t, cfg).Engine != "" {
		t.Skip("it is copied from a folder")
	}
	start(t, cfg).shutdown()
	var addresses []string
	for range 3 {
		l := testkit.Value(net.Listen("tcp", net.JoinHostPort(parts.OwnLoopback(), "0")))(t)
		defer l.Close() // all are open at once, so that they differ
		addresses = append(addresses, l.Addr().String())
		testkit.Must(t, l.Close())
	}
	made := testkit.Value(NewBundles(filepath.Join(t.TempDir(), "bundles"), "shop", strings.Join(addresses, ",")))(t)
	var at []Location
	for _, p := range made {
		at = append(at, Location{DataDir: filepath.Join(t.TempDir(), "data"), Peer: Peer{Bundle: testkit.Value(ReadBundle(p.File))(t)}})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var lending sync.WaitGroup
	for _, one := range at[1:] {
		lending.Go(func() { testkit.Check(t, TakePart(ctx, one, "test", testkit.Quiet(), func() {})) })
	}
	testkit.Must(t, testkit.Err(Copy(t.Context(), Copying{From: Location{DataDir: cfg.DataDir}, To: at[0], Version: "test", Log: testkit.Quiet()})))
	stop()
	lending.Wait()

	nodes := make([]*running, len(at))
	var starting sync.WaitGroup
	for i, one := range at {
		starting.Go(func() {
			nodes[i] = start(t, Config{
				Log: testkit.Quiet(), DataDir: one.DataDir, Peer: one.Peer, HTTP: "127.0.0.1:0", AMQP: Off, AMQPS: Off, HTTPS: Off,
			})
		})
	}
	starting.Wait()
	for _, r := range nodes {
		r.want(http.StatusOK, "GET", "/api/v1/hubs/orders", "")
	}
}
