package server

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R3: a receiver that accepts and never answers takes its part of the connections, whatever the
// number of its subscriptions and events, so that other receivers get theirs, and storage its files.
func TestAHangingReceiverStopsNobody(t *testing.T) {
	cfg := quick(t)
	cfg.descriptors, cfg.Grace = 64+8*8, time.Millisecond
	outgoing := cfg.withDefaults().shares().Outgoing
	testkit.MustEqual(t, outgoing, 8)
	r := start(t, cfg)
	listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	var held atomic.Int32
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			held.Add(1)
			all.Go(func() {
				_, _ = conn.Read(make([]byte, 1<<20)) // until the yard hangs up, or the request is there
				_, _ = conn.Read(make([]byte, 1<<20))
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		testkit.Check(t, listener.Close())
		r.shutdown()
		all.Wait()
	})
	r.want(201, "POST", "/api/v1/topics", `{"name":"orders"}`)
	for i := range 5 {
		r.want(201, "POST", "/api/v1/subscriptions",
			fmt.Sprintf(`{"name":"hangs%d","topic":"orders","endpoint":"http://%s/%d","skipValidation":true}`, i, listener.Addr(), i))
	}
	healthy := newReceiver(t)
	r.want(201, "POST", "/api/v1/subscriptions", fmt.Sprintf(`{"name":"healthy","topic":"orders","endpoint":%q}`, healthy.URL))
	for i := range 16 {
		r.publish("orders", fmt.Sprint("event-", i))
		healthy.await(healthy.got, "event-")
	}
	testkit.Eventually(t, "requests hang", func() bool { return held.Load() > 0 })
	r.want(201, "POST", "/api/v1/topics", `{"name":"others"}`)
	testkit.That(t, int(held.Load()) <= outgoing/2, "it has %d connections of %d", held.Load(), outgoing)
}
