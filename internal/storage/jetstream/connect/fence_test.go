package connect

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: behind a fence nothing is sent, and no other connection is made.
func TestAFenceEndsAConnection(t *testing.T) {
	servers := natstest.Shared(t, 1)
	var down atomic.Bool
	var asked atomic.Int64 // since it is down
	cfg := config(t, servers.URL()+"?replicas=1")
	cfg.Fence = func() error {
		if !down.Load() {
			return nil
		}
		asked.Add(1)
		return errors.New("it is down")
	}
	conn := dial(t, cfg).Publish
	other, subject := servers.Dial(t, 0), nats.NewInbox()
	heard := make(chan *nats.Msg, 10)
	testkit.Must(t, testkit.Err(other.ChanSubscribe(subject, heard)))
	testkit.Must(t, other.Flush())
	testkit.Must(t, conn.Publish(subject, []byte("before")))
	testkit.Equal(t, string((<-heard).Data), "before", "heard")
	down.Store(true)
	_ = conn.Publish(subject, []byte("behind")) // it waits to be sent
	testkit.Eventually(t, "the connection ends", func() bool { return !conn.IsConnected() })
	tries := asked.Load()
	testkit.Eventually(t, "it tries to connect again", func() bool { return asked.Load() > tries+2 })
	testkit.That(t, conn.Publish(subject, []byte("behind")) != nil, "it takes more")
	testkit.Must(t, other.Publish(subject, []byte("after")))
	testkit.Equal(t, string((<-heard).Data), "after", "heard")
}
