package amqp

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come, before it fails.
const patience = 30 * time.Second

// receive takes a value that has to come.
func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

// handler is a Handler made of functions; nil ones accept.
type handler struct {
	strangers    bool // peers have shown no right
	connected    func(c *Conn) error
	attach       func(l *Link) (Terminus, error)
	disconnected func()
}

func (h *handler) Connected(c *Conn) (Peer, error) {
	if !h.strangers {
		if err := c.Know("somebody"); err != nil {
			return nil, err
		}
	}
	if h.connected != nil {
		if err := h.connected(c); err != nil {
			return nil, err
		}
	}
	return peerOf{h}, nil
}

type peerOf struct{ *handler }

func (p peerOf) Attach(l *Link) (Terminus, error) { return p.attach(l) }

func (p peerOf) Disconnected() {
	if p.disconnected != nil {
		p.disconnected()
	}
}

// sink is a Sink made of functions; without any it accepts.
type sink struct {
	deliver func(d *Delivery)
	onClose func()
	closed  atomic.Int32
}

func (s *sink) Deliver(d *Delivery) {
	if s.deliver == nil {
		d.Accept()
		return
	}
	s.deliver(d)
}

func (s *sink) Closed() {
	s.closed.Add(1)
	if s.onClose != nil {
		s.onClose()
	}
}

// source is a Source made of functions; without any it waits for its end.
type source struct {
	run     func(ctx context.Context, l *Link) error
	onClose func()
	closed  atomic.Int32
}

func (s *source) Run(ctx context.Context, l *Link) error {
	if s.run == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return s.run(ctx, l)
}

func (s *source) Closed() {
	s.closed.Add(1)
	if s.onClose != nil {
		s.onClose()
	}
}

// accept gives every sending link that sink, and every receiving one that source.
func accept(in *sink, out *source) *handler {
	return &handler{attach: func(l *Link) (Terminus, error) {
		if l.Request().Role == wire.RoleSender {
			return Terminus{Sink: in, MaxMessageBytes: 1 << 20}, nil
		}
		return Terminus{Source: out, Settled: true}, nil
	}}
}

// fixture is a server with a handler of the test's.
type fixture struct {
	t      testing.TB
	server *Server
	serves sync.WaitGroup
}

// serve makes a server that ends with the test.
func serve(t testing.TB, h Handler, change ...func(*Config)) *fixture {
	t.Helper()
	cfg := Config{Handler: h, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, f := range change {
		f(&cfg)
	}
	s := testkit.Value(New(cfg))(t)
	f := &fixture{t: t, server: s}
	t.Cleanup(f.stop)
	return f
}

func (f *fixture) stop() {
	// Not the test's context, which has ended; and clients that are still there are cut off.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.server.Stop(ctx)
	f.serves.Wait()
}

// pipe gives the client's end of a connection that the server serves.
func (f *fixture) pipe() net.Conn {
	client, server := net.Pipe()
	f.serveConn(server)
	return client
}

func (f *fixture) serveConn(nc net.Conn) {
	f.serves.Go(func() { f.server.ServeConn(context.Background(), nc) })
}

// refused is how often someone was refused for a reason.
func (f *fixture) refused(reason string) float64 {
	return testutil.ToFloat64(f.server.metrics.refused.WithLabelValues(reason))
}
