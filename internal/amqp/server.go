package amqp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/conns"
)

// Server serves connections.
type Server struct {
	cfg         Config
	container   string // our container id
	metrics     *metrics
	reading     *bufferPool // large buffers to read with
	strangers   *bufferPool // the same for strangers
	writing     *bufferPool // what waits to be written
	partBuffers partPool    // unfinished messages
	answers     budget      // answers that wait to be written

	// Fixed but for tests.
	drainWait     time.Duration
	vanishedAfter time.Duration
	tcpState      func(net.Conn) (tcpState, bool)

	conns *conns.Set[*Conn]
	// All below is guarded by the lock of conns.
	serving  int // those of conns that have a permit
	lastID   uint64
	watching bool // a timer will call watch
}

// New makes a server. It starts nothing.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("amqp: %w", err)
	}
	var tail [8]byte
	rand.Read(tail[:])
	return &Server{
		cfg:       cfg,
		container: cfg.Container + "-" + hex.EncodeToString(tail[:]),
		metrics:   m,
		reading:   newBufferPool(int(cfg.MaxFrameBytes) + readAheadBytes),
		writing:   newBufferPool(smallReadBytes),
		strangers: newBufferPool(strangerFrameBytes),
		answers:   budget{limit: maxAllAnswerBytes},
		conns: conns.New(conns.Config[*Conn]{
			Protocol: "amqp", Log: cfg.Log, Drain: func(c *Conn) { c.Close(errorStopping()) }, Cut: func(c *Conn) { c.cut(errEnded) },
		}),

		drainWait:     drainWait,
		vanishedAfter: vanishedAfter,
		tcpState:      readTCPState,
	}, nil
}

// Serve takes connections from a listener until it is closed, ctx ends or Stop is called, and
// returns when every connection it took has ended: those that still run when ctx ends are closed as
// by Stop. A TLS listener gives *tls.Conn. The error is nil unless the listener failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.conns.Serve(ctx, l, func(nc net.Conn) { s.ServeConn(ctx, nc) })
}

// ServeConn serves one connection until it ends, and closes it. When ctx ends it is
// closed as by Stop.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	permit, full := s.cfg.Admission.Enter(conns.Bottom(nc).RemoteAddr())
	s.serve(ctx, nc, nil, permit, full)
}

// serve is given the TLS layer where the connection does not know it itself, and a permit, which it
// gives back, or why there is none.
func (s *Server) serve(ctx context.Context, nc net.Conn, state *tls.ConnectionState, permit *admission.Permit, full error) {
	defer permit.Leave()
	c := s.admit(ctx, nc, permit, full)
	if c == nil {
		nc.Close()
		return
	}
	defer s.conns.Remove(c, func() { s.unserveLocked(c) })
	permit.OnEvict(func() { s.evict(c) })
	c.handshake.tls = state
	defer context.AfterFunc(ctx, func() { c.Close(errorStopping()) })()
	c.run()
}

// admit makes the connection, nil when there is no room for it. Some that have no permit are served
// only to be refused by an error.
func (s *Server) admit(ctx context.Context, nc net.Conn, permit *admission.Permit, full error) *Conn {
	c, _ := s.conns.Add(func(present int) (*Conn, bool) {
		if full != nil {
			s.metrics.refuse(reasonConnections)
			if present-s.serving >= maxRefusing {
				return nil, false
			}
		}
		s.lastID++
		c := newConn(ctx, s, nc, strconv.FormatUint(s.lastID, 10), permit)
		if full == nil {
			c.serving = true
			s.serving++
			s.metrics.connections.Inc()
		} else {
			c.refusal = errorFull(full)
		}
		s.watchLocked()
		return c, true
	})
	return c
}

// evict ends a connection whose permit was taken away: some by an error, and when these are too
// many at once without a word.
func (s *Server) evict(c *Conn) {
	polite := false
	s.conns.Locked(func(present int) {
		polite = present-s.serving < maxRefusing
		s.unserveLocked(c)
	})
	if polite {
		c.Close(errorEvicted())
		return
	}
	c.cut(errEnded)
}

// unserveLocked counts a connection as one without a permit. It may be called again.
func (s *Server) unserveLocked(c *Conn) {
	if c.serving {
		c.serving = false
		s.serving--
		s.metrics.connections.Dec()
	}
}

// Stop ends all connections politely: links are detached and connections closed with
// amqp:connection:forced. It returns when all have ended, or cuts off the rest when ctx
// ends. No connections are taken any more.
func (s *Server) Stop(ctx context.Context) error { return s.conns.Stop(ctx) }
