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

// C1: a stream is made although the servers leave a request unanswered, as they do while they choose
// its leader, or while another node is making it. The servers are a double, on a server without
// JetStream.
func TestAStreamIsMadeThoughARequestIsNotAnswered(t *testing.T) {
	tests := map[string]struct {
		answersInfo bool
		ignores     int32 // how many requests for the stream are not answered
	}{
		"the first one for the stream":         {answersInfo: true, ignores: 1},
		"that which asks whether one is there": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartAs(t, func(listen, _ string) string { return "listen: " + listen })
			conn := testkit.Value(nats.Connect(url))(t)
			t.Cleanup(conn.Close)
			s := testkit.Value(Open(Conns{conn, conn, conn}, Config{Yard: "test"}))(t)
			t.Cleanup(func() { testkit.Check(t, s.Close()) })
			var asked atomic.Int32
			testkit.Value(conn.Subscribe("$JS.API.STREAM.*.*", func(m *nats.Msg) {
				switch {
				case strings.Contains(m.Subject, ".INFO."):
					if tt.answersInfo {
						testkit.Check(t, m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)))
					}
				case asked.Add(1) > tt.ignores:
					testkit.Check(t, m.Respond([]byte(`{"config":`+string(m.Data)+`}`)))
				}
			}))(t)
			testkit.Must(t, s.Make(t.Context(), "s", streams.Config{}))
		})
	}
}
