package kafka

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"

	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/conns"
)

// Server serves connections.
type Server struct {
	cfg     Config
	metrics *metrics
	reading *bufferPool  // larger buffers to read with
	records recordsPools // for the records of Produce
	writing *bufferPool  // answers
	secrets scramSecrets

	conns  *conns.Set[*Conn]
	lastID uint64 // guarded by the lock of conns
}

// New makes a server. It starts nothing.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	s := &Server{
		cfg:     cfg,
		metrics: m,
		reading: newBufferPool(largeReadBytes),
		records: newRecordsPools(cfg.MaxRecordsBytes),
		writing: newBufferPool(smallReadBytes),
		conns: conns.New(conns.Config[*Conn]{
			Protocol: "kafka", Log: cfg.Log, Drain: (*Conn).drain, Cut: func(c *Conn) { c.cut(errEnded) },
		}),
	}
	rand.Read(s.secrets.seed[:])
	return s, nil
}

// Serve takes connections from a listener until it is closed, ctx ends or Stop is called, and returns
// when every connection it took has ended: those that still run when ctx ends are ended as by Stop. A TLS
// listener gives *tls.Conn. The error is nil unless the listener failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.conns.Serve(ctx, l, func(nc net.Conn) { s.ServeConn(ctx, nc) })
}

// ServeConn serves one connection until it ends, and closes it. When ctx ends it is ended as by Stop.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	permit, err := s.cfg.Admission.Enter(conns.Bottom(nc).RemoteAddr())
	if err != nil {
		s.metrics.refuse(reasonConnections)
		nc.Close()
		return
	}
	defer permit.Leave()
	c := s.admit(ctx, nc, permit)
	if c == nil {
		nc.Close()
		return
	}
	defer s.conns.Remove(c, s.metrics.connections.Dec)
	permit.OnEvict(func() { c.cut(errEvicted) })
	defer context.AfterFunc(ctx, c.drain)()
	c.run(ctx)
}

// admit makes the connection, nil when the server stops.
func (s *Server) admit(ctx context.Context, nc net.Conn, permit *admission.Permit) *Conn {
	c, _ := s.conns.Add(func(int) (*Conn, bool) {
		s.lastID++
		s.metrics.connections.Inc()
		return newConn(ctx, s, nc, s.lastID, permit), true
	})
	return c
}

// Stop ends all connections politely: no requests are taken any more, and those under way are finished
// and answered. It returns when all have ended, or cuts off the rest when ctx ends. No connections are
// taken any more.
func (s *Server) Stop(ctx context.Context) error { return s.conns.Stop(ctx) }
