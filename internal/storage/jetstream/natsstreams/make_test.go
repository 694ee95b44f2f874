package natsstreams

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1: a request that the servers leave unanswered, as they do while they choose a stream's leader, or
// while another node is making the stream, is made again. The servers are a double, on a server without
// JetStream.
func TestWhatIsNotAnsweredIsAskedAgain(t *testing.T) {
	tests := map[string]struct {
		ignores string // the first request whose subject has it is not answered
		call    func(context.Context, *Storage) error
	}{
		"the request for a stream": {".CREATE.", makeStream},
		"whether there is one":     {".INFO.", makeStream},
		"its last message": {".MSG.GET.", func(ctx context.Context, s *Storage) error {
			_, err := s.Last(ctx, "s", "")
			return err
		}},
		"what is read": {".DIRECT.GET.", func(ctx context.Context, s *Storage) error {
			_, err := s.Read(ctx, "s", streams.Query{})
			return err
		}},
		"the names of all": {".NAMES", func(ctx context.Context, s *Storage) error {
			_, err := s.Names(ctx)
			return err
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartAs(t, func(listen, _ string) string { return "listen: " + listen })
			conn := testkit.Value(nats.Connect(url))(t)
			t.Cleanup(conn.Close)
			s := testkit.Value(Open(Conns{conn, conn, conn}, Config{Yard: "test"}))(t)
			t.Cleanup(func() { testkit.Check(t, s.Close()) })
			ignored := false // of the one goroutine that a subscription has
			testkit.Value(conn.Subscribe("$JS.API.>", func(m *nats.Msg) {
				switch {
				case !ignored && strings.Contains(m.Subject, tt.ignores):
					ignored = true
				case strings.Contains(m.Subject, ".CREATE."):
					testkit.Check(t, m.Respond([]byte(`{"config":`+string(m.Data)+`}`)))
				case strings.Contains(m.Subject, ".INFO."):
					testkit.Check(t, m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)))
				case strings.Contains(m.Subject, ".DIRECT.GET."):
					testkit.Check(t, m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}}}))
				case strings.Contains(m.Subject, ".NAMES"):
					testkit.Check(t, m.Respond([]byte(`{}`)))
				default:
					testkit.Check(t, m.Respond([]byte(`{"message":{"seq":1,"subject":"y.test.l.s.0"}}`)))
				}
			}))(t)
			testkit.Must(t, tt.call(t.Context(), s))
		})
	}
}

func makeStream(ctx context.Context, s *Storage) error { return s.Make(ctx, "s", streams.Config{}) }
