package conns

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conn is one that ends when it is drained, or only when it is cut off.
type conn struct {
	stubborn bool
	once     sync.Once
	ended    chan struct{}
}

func (c *conn) end() { c.once.Do(func() { close(c.ended) }) }

func newSet() *Set[*conn] {
	return New(Config[*conn]{
		Protocol: "test", Log: testkit.Quiet(), Cut: (*conn).end,
		Drain: func(c *conn) {
			if !c.stubborn {
				c.end()
			}
		},
	})
}

// serve is what a server does with a connection.
func serve(s *Set[*conn], stubborn bool) {
	c, ok := s.Add(func(int) (*conn, bool) { return &conn{stubborn: stubborn, ended: make(chan struct{})}, true })
	if ok {
		defer s.Remove(c, func() {})
		<-c.ended
	}
}

// listener gives what it is told to.
type listener struct {
	net.Listener
	next   chan error // nil: a connection
	closed chan struct{}
	once   sync.Once
}

func newListener() *listener { return &listener{next: make(chan error), closed: make(chan struct{})} }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case err := <-l.next:
		return unused{}, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// unused is a connection.
type unused struct{ net.Conn }

// temporary is an error that passes, as where there are too many open files.
type temporary struct{ error }

func (temporary) Temporary() bool { return true }

// R2: a server that stops takes no connections any more, has those that there are end, and cuts off who does
// not, when its time is over.
func TestStop(t *testing.T) {
	for name, stubborn := range map[string]bool{"all end": false, "one does not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l, served := newSet(), newListener(), make(chan error, 1)
				go func() { served <- s.Serve(t.Context(), l, func(net.Conn) { serve(s, stubborn) }) }()
				for range 3 {
					l.next <- nil
				}
				synctest.Wait()
				testkit.Equal(t, len(s.All()), 3, "connections")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begun := time.Now()
				err := s.Stop(ctx)
				if stubborn {
					testkit.ErrorIs(t, err, context.DeadlineExceeded)
					testkit.Equal(t, time.Since(begun), time.Minute, "it took")
				} else {
					testkit.Must(t, err)
					testkit.Equal(t, time.Since(begun), 0, "it took")
				}
				testkit.Must(t, <-served)
				testkit.Equal(t, len(s.All()), 0, "connections")
				testkit.Must(t, s.Stop(t.Context()), "again")

				late := newListener()
				testkit.Must(t, s.Serve(t.Context(), late, nil), "a listener that comes late")
				<-late.closed
				_, ok := s.Add(func(int) (*conn, bool) { t.Error("one is made"); return nil, true })
				testkit.Equal(t, ok, false, "a connection that comes late is taken")
			})
		})
	}
}

// R2: where there is no room for one more a listener waits for it; other errors end it.
func TestAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, served := newSet(), newListener(), make(chan error, 1)
		taken := 0
		go func() { served <- s.Serve(t.Context(), l, func(net.Conn) { taken++ }) }()
		for range 5 {
			l.next <- temporary{errors.New("too many open files")}
		}
		l.next <- nil
		broken := errors.New("broken")
		l.next <- broken
		testkit.ErrorIs(t, <-served, broken)
		testkit.Equal(t, taken, 1, "connections")
	})
}

// R2: a listener ends with its context, and its server goes on: it takes connections, and none that it refuses.
func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, served := newSet(), newListener(), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { served <- s.Serve(ctx, l, func(net.Conn) { serve(s, false) }) }()
		synctest.Wait()
		cancel()
		testkit.Must(t, <-served)
		c, ok := s.Add(func(present int) (*conn, bool) { return &conn{ended: make(chan struct{})}, present == 0 })
		testkit.Equal(t, ok, true, "a connection is taken")
		_, ok = s.Add(func(present int) (*conn, bool) { return nil, present == 0 })
		testkit.Equal(t, ok, false, "one that its server refuses is taken")
		s.Remove(c, func() {})
		s.Locked(func(present int) { testkit.Equal(t, present, 0, "connections") })
	})
}

// layer is a connection over another.
type layer struct {
	net.Conn
	under net.Conn
}

func (l layer) NetConn() net.Conn { return l.under }

// R2: who is counted by its address, and cut off, is the connection under all layers, whatever these wait for.
func TestBottom(t *testing.T) {
	one, two := net.Pipe()
	defer one.Close()
	defer two.Close()
	testkit.Equal(t, Bottom(one), one)
	testkit.Equal(t, Bottom(layer{under: layer{under: one}}), one)
}
