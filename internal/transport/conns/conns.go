// Package conns is what the servers of AMQP and Kafka have in common, whatever they speak: connections are
// taken from listeners, known for as long as they live, and ended together.
package conns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// Config is how connections are called, and ended.
type Config[C comparable] struct {
	// Protocol begins errors, and is in what is logged.
	Protocol string
	Log      *slog.Logger
	// Drain has a connection end politely, and does not wait for it. Cut ends it at once; it is called with
	// the set's lock held. Both may be called again, and by any goroutine.
	Drain, Cut func(C)
}

// Set is the connections of a server, and the listeners that they come from. Its methods may be called by
// many goroutines at once.
type Set[C comparable] struct {
	cfg Config[C]

	mu sync.Mutex
	// All below is guarded by mu.
	listeners map[net.Listener]struct{}
	conns     map[C]struct{}
	stopping  bool
	stopped   chan struct{} // closed when stopping and without connections
}

// New makes a set without any connection. It starts nothing.
func New[C comparable](cfg Config[C]) *Set[C] {
	return &Set[C]{cfg: cfg, listeners: map[net.Listener]struct{}{}, conns: map[C]struct{}{}, stopped: make(chan struct{})}
}

// Serve takes connections from a listener until it is closed, ctx ends or Stop is called, and returns when
// serve has returned for each of them. The error is nil unless the listener failed.
func (s *Set[C]) Serve(ctx context.Context, l net.Listener, serve func(net.Conn)) error {
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

	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		nc, err := s.accept(ctx, l)
		if err != nil {
			return err
		}
		if nc == nil {
			return nil
		}
		serving.Go(func() { serve(nc) })
	}
}

func (s *Set[C]) listening(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

// accept gives the next connection, nil when there is none to come. Where there is no room for one more
// (too many open files), it waits for room.
func (s *Set[C]) accept(ctx context.Context, l net.Listener) (net.Conn, error) {
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
			return nil, fmt.Errorf("%s: accept: %w", s.cfg.Protocol, err)
		}
		s.cfg.Log.Warn("cannot accept connections for now", "protocol", s.cfg.Protocol, "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// Add has a connection made, with the lock held, and takes it in; it is given how many there are. False:
// the server stops, or make has said so.
func (s *Set[C]) Add(make func(present int) (C, bool)) (C, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		var none C
		return none, false
	}
	c, ok := make(len(s.conns))
	if ok {
		s.conns[c] = struct{}{}
	}
	return c, ok
}

// Remove is for a connection that has ended. Then is called with the lock held.
func (s *Set[C]) Remove(c C, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	then()
	if s.stopping && len(s.conns) == 0 {
		close(s.stopped)
	}
}

// Locked calls do with the lock held, which is for what a server counts of its connections besides; it is
// given how many there are.
func (s *Set[C]) Locked(do func(present int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(len(s.conns))
}

// All gives those there are, in no order.
func (s *Set[C]) All() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// Stop closes the listeners and has all connections end politely. It returns when all have ended, or cuts
// off the rest when ctx ends. No connections are taken any more.
func (s *Set[C]) Stop(ctx context.Context) error {
	for _, c := range s.beginStop() {
		s.cfg.Drain(c)
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		s.cfg.Cut(c)
	}
	if len(s.conns) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d connections had to be cut off: %w", s.cfg.Protocol, len(s.conns), context.Cause(ctx))
}

// beginStop closes the listeners and gives who is inside.
func (s *Set[C]) beginStop() []C {
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

// Bottom is the connection under all layers that say what they stand on.
func Bottom(nc net.Conn) net.Conn {
	for {
		layered, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return nc
		}
		nc = layered.NetConn()
	}
}
