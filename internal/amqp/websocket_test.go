package amqp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	azure "github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// web is the server behind HTTP.
func (f *fixture) web(start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(f.server)
	start(s)
	f.t.Cleanup(s.Close)
	f.t.Cleanup(f.stop) // before: an HTTP server does not know its WebSockets any more
	return s
}

func TestWebSocket(t *testing.T) { // H8
	for _, offered := range []string{"AMQPWSB10", "amqp", ""} {
		for _, secure := range []bool{false, true} {
			t.Run(offered, func(t *testing.T) {
				in := &sink{}
				f := serve(t, accept(in, counting(t, 5, 100_000)))
				start := (*httptest.Server).Start
				if secure {
					start = (*httptest.Server).StartTLS
				}
				web := f.web(start)
				opts := &websocket.DialOptions{HTTPClient: web.Client()}
				if offered != "" {
					opts.Subprotocols = []string{"other", offered}
				}
				ws, _, err := websocket.Dial(t.Context(), web.URL, opts)
				testkit.Must(t, err)
				testkit.MustEqual(t, ws.Subprotocol(), offered, "got subprotocol")
				conn := f.dial(websocket.NetConn(context.Background(), ws, websocket.MessageBinary), &azure.ConnOptions{
					SASLType: azure.SASLTypeAnonymous(), MaxFrameSize: 4096, // Java's
				})
				session := testkit.Value(conn.NewSession(t.Context(), nil))(t)
				s := testkit.Value(session.NewSender(t.Context(), "hub", nil))(t)
				testkit.Must(t, s.Send(t.Context(), azure.NewMessage(make([]byte, 300_000)), nil))
				r := testkit.Value(session.NewReceiver(t.Context(), "hub", nil))(t)
				for range 5 {
					testkit.Must(t, testkit.Err(r.Receive(t.Context(), nil)))
				}
				conn.Close() // its own closing is an error to it here
				testkit.Must(t, f.server.Stop(t.Context()))
				testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed")
			})
		}
	}
}

// The borders of the WebSocket's messages mean nothing.
func TestWebSocketMessagesAreNotFrames(t *testing.T) {
	f := serve(t, accept(&sink{}, nil))
	web := f.web((*httptest.Server).Start)
	ws, _, err := websocket.Dial(t.Context(), web.URL, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
	testkit.Must(t, err)
	p := newRawPeer(t, websocket.NetConn(context.Background(), ws, websocket.MessageBinary))
	b := append([]byte(nil), wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
	b = appendFrame(b, 0, newBegin(), nil)
	for _, c := range b {
		p.write([]byte{c})
	}
	expect[wire.Open](p)
	expect[wire.Begin](p)
	p.write(appendFrame(appendFrame(nil, 0, &wire.End{}, nil), 0, &wire.Close{}, nil))
	expect[wire.End](p)
	p.expectClose("")
	p.expectGone()
}

func TestWebSocketText(t *testing.T) {
	f := serve(t, accept(&sink{}, nil))
	web := f.web((*httptest.Server).Start)
	ws, _, err := websocket.Dial(t.Context(), web.URL, nil)
	testkit.Must(t, err)
	testkit.Must(t, ws.Write(t.Context(), websocket.MessageText, wire.ProtocolAMQP[:]))
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Fatalf("got %v", err)
	}
}

func TestNotAWebSocket(t *testing.T) {
	f := serve(t, accept(nil, nil), func(c *Config) { c.Admission = admission.New(admission.Limits{Strangers: 1}).Listener(1) })
	web := f.web((*httptest.Server).Start)
	get := func() (int, string) {
		t.Helper()
		resp := testkit.Value(http.Get(web.URL))(t)
		defer resp.Body.Close()
		body := testkit.Value(io.ReadAll(resp.Body))(t)
		return resp.StatusCode, string(body)
	}
	if status, _ := get(); status != http.StatusUpgradeRequired {
		t.Errorf("got %d", status)
	}
	f.pipe() // a stranger, that says nothing
	for len(f.conns()) == 0 {
		runtime.Gosched()
	}
	if status, body := get(); status != http.StatusServiceUnavailable || !strings.Contains(body, "no more AMQP connections") {
		t.Errorf("got %d, %q", status, body)
	}
	testkit.Equal(t, f.refused(reasonConnections), 1, "not counted")
}

// A page of another site must not use the browser of someone who can reach this yard.
func TestWebSocketFromAnotherSite(t *testing.T) { // H9
	f := serve(t, accept(nil, nil))
	web := f.web((*httptest.Server).Start)
	header := http.Header{"Origin": {"https://other.example.test"}}
	_, resp, err := websocket.Dial(t.Context(), web.URL, &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"amqp"}})
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Fatalf("got %v", err)
	}
	// Python says where it comes from: from here.
	header.Set("Origin", web.URL)
	ws, _, err := websocket.Dial(t.Context(), web.URL, &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"AMQPWSB10"}})
	testkit.Must(t, err)
	ws.CloseNow()
}
