package natsstreams

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1: a stream whose servers need long to choose a leader is made nevertheless: the first request is
// not answered in time, and the second is. The servers are a double, on a server without JetStream.
func TestAStreamIsAskedForAgain(t *testing.T) {
	url := natstest.StartAs(t, func(listen, _ string) string { return "listen: " + listen })
	conn := testkit.Value(nats.Connect(url))(t)
	t.Cleanup(conn.Close)
	s := testkit.Value(Open(Conns{conn, conn, conn}, Config{Yard: "test"}))(t)
	t.Cleanup(func() { testkit.Check(t, s.Close()) })
	var asked atomic.Int32
	testkit.Value(conn.Subscribe("$JS.API.STREAM.*.*", func(m *nats.Msg) {
		switch {
		case strings.Contains(m.Subject, ".INFO."):
			testkit.Check(t, m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)))
		case asked.Add(1) > 1:
			testkit.Check(t, m.Respond([]byte(`{"config":`+string(m.Data)+`}`)))
		}
	}))(t)
	testkit.Must(t, s.Make(t.Context(), "s", streams.Config{}))
	testkit.Equal(t, asked.Load(), 2, "requests for the stream")
}
