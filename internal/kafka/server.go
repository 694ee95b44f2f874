package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Server serves connections.
type Server struct {
	cfg     Config
	metrics *metrics
	reading *bufferPool  // larger buffers to read with
	records recordsPools // for the records of Produce
	writing *bufferPool  // answers
	secrets scramSecrets

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*Conn]struct{}
	lastID    uint64
	stopping  bool
	stopped   chan struct{} // closed when stopping and without connections
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
		cfg:       cfg,
		metrics:   m,
		reading:   newBufferPool(largeReadBytes),
		records:   newRecordsPools(cfg.MaxRecordsBytes),
		writing:   newBufferPool(smallReadBytes),
		listeners: map[net.Listener]struct{}{},
		conns:     map[*Conn]struct{}{},
		stopped:   make(chan struct{}),
	}
	rand.Read(s.secrets.seed[:])
	return s, nil
}

// Serve takes connections from a listener until it is closed, ctx ends or Stop is called, and returns
// when every connection it took has ended: those that still run when ctx ends are ended as by Stop. A TLS
// listener gives *tls.Conn. The error is nil unless the listener failed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.listening(l) {
		l.Close()
		return nil
	}
	defer func() {
		l.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	defer context.AfterFunc(ctx, func() { l.Close() })()

	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		nc, err := s.accept(ctx, l)
		if err != nil {
			return err
		}
		if nc == nil {
			return nil
		}
		conns.Go(func() { s.ServeConn(ctx, nc) })
	}
}

// accept gives the next connection, nil when there is none to come. Where there is no room for one more
// (too many open files), it waits for room.
func (s *Server) accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		nc, err := l.Accept()
		if err == nil {
			return nc, nil
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil, nil
		}
		if temporary, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); !ok || !temporary.Temporary() {
			return nil, fmt.Errorf("kafka: accept: %w", err)
		}
		s.cfg.Log.Warn("cannot accept Kafka connections for now", "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// ServeConn serves one connection until it ends, and closes it. When ctx ends it is ended as by Stop.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	permit, err := s.cfg.Admission.Enter(bottom(nc).RemoteAddr())
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
	defer s.leave(c)
	permit.OnEvict(func() { c.cut(errEvicted) })
	defer context.AfterFunc(ctx, c.drain)()
	c.run(ctx)
}

// admit makes the connection, nil when the server stops.
func (s *Server) admit(ctx context.Context, nc net.Conn, permit *admission.Permit) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	s.lastID++
	c := newConn(ctx, s, nc, s.lastID, permit)
	s.conns[c] = struct{}{}
	s.metrics.connections.Inc()
	return c
}

func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.metrics.connections.Dec()
	if s.stopping && len(s.conns) == 0 {
		close(s.stopped)
	}
}

func (s *Server) listening(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

// Stop ends all connections politely: no requests are taken any more, and those under way are finished
// and answered. It returns when all have ended, or cuts off the rest when ctx ends. No connections are
// taken any more.
func (s *Server) Stop(ctx context.Context) error {
	for _, c := range s.beginStop() {
		c.drain()
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut(errEnded)
	}
	if len(s.conns) == 0 {
		return nil
	}
	return fmt.Errorf("kafka: %d connections had to be cut off: %w", len(s.conns), context.Cause(ctx))
}

// beginStop closes the listeners and gives who is inside.
func (s *Server) beginStop() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.stopping = true
		if len(s.conns) == 0 {
			close(s.stopped)
		}
	}
	for l := range s.listeners {
		l.Close()
	}
	return slices.Collect(maps.Keys(s.conns))
}
