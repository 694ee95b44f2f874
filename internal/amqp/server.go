package amqp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Server serves connections.
type Server struct {
	cfg       Config
	container string // our container id
	metrics   *metrics
	reading   *bufferPool // large buffers to read with
	strangers *bufferPool // the same for strangers
	writing   *bufferPool // what waits to be written
	// partBuffers hold unfinished messages; parts counts what they take.
	partBuffers partPool
	parts       budget // unfinished messages
	answers     budget // answers that wait to be written

	// Fixed but for tests.
	drainWait     time.Duration
	vanishedAfter time.Duration
	tcpState      func(net.Conn) (tcpState, bool)

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*Conn]struct{}
	serving   int // those of conns that have a permit
	lastID    uint64
	watching  bool // a timer will call watch
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
		parts: budget{limit: max(maxAllPartBytes, int64(min(cfg.MaxMessageBytes, math.MaxInt64/2))) +
			int64(cfg.Admission.Limits().StrangerBytes)},
		strangers: newBufferPool(strangerFrameBytes),
		answers:   budget{limit: maxAllAnswerBytes},
		listeners: map[net.Listener]struct{}{},
		conns:     map[*Conn]struct{}{},
		stopped:   make(chan struct{}),

		drainWait:     drainWait,
		vanishedAfter: vanishedAfter,
		tcpState:      readTCPState,
	}, nil
}

// Serve takes connections from a listener until it is closed, ctx ends or Stop is called, and
// returns when every connection it took has ended: those that still run when ctx ends are closed as
// by Stop. A TLS listener gives *tls.Conn. The error is nil unless the listener failed.
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

// accept gives the next connection, nil when there is none to come. Where there is no
// room for one more (too many open files), it waits for room.
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
			return nil, fmt.Errorf("amqp: accept: %w", err)
		}
		s.cfg.Log.Warn("cannot accept AMQP connections for now", "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// ServeConn serves one connection until it ends, and closes it. When ctx ends it is
// closed as by Stop.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	permit, full := s.cfg.Admission.Enter(bottom(nc).RemoteAddr())
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
	defer s.leave(c)
	permit.OnEvict(func() { s.evict(c) })
	c.handshake.tls = state
	defer context.AfterFunc(ctx, func() { c.Close(errorStopping()) })()
	c.run(ctx)
}

// admit makes the connection, nil when there is no room for it. Some that have no permit are served
// only to be refused by an error.
func (s *Server) admit(ctx context.Context, nc net.Conn, permit *admission.Permit, full error) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	if full != nil {
		s.metrics.refuse(reasonConnections)
		if len(s.conns)-s.serving >= maxRefusing {
			return nil
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
	s.conns[c] = struct{}{}
	s.watchLocked()
	return c
}

// evict ends a connection whose permit was taken away: some by an error, and when these are too
// many at once without a word.
func (s *Server) evict(c *Conn) {
	s.mu.Lock()
	polite := len(s.conns)-s.serving < maxRefusing
	s.unserveLocked(c)
	s.mu.Unlock()
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

func (s *Server) leave(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.unserveLocked(c)
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

// Stop ends all connections politely: links are detached and connections closed with
// amqp:connection:forced. It returns when all have ended, or cuts off the rest when ctx
// ends. No connections are taken any more.
func (s *Server) Stop(ctx context.Context) error {
	for _, c := range s.beginStop() {
		c.Close(errorStopping())
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
	return fmt.Errorf("amqp: %d connections had to be cut off: %w", len(s.conns), context.Cause(ctx))
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
