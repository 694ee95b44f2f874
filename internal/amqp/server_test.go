package amqp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	azure "github.com/Azure/go-amqp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

func TestConfigs(t *testing.T) {
	good := Config{Handler: accept(nil, nil)}
	tests := []struct {
		name   string
		change func(c *Config)
		ok     bool
	}{
		{"the least", func(*Config) {}, true},
		{"no handler", func(c *Config) { c.Handler = nil }, false},
		{"frames below the standard's least", func(c *Config) { c.MaxFrameBytes = 511 }, false},
		{"small frames", func(c *Config) { c.MaxFrameBytes = 512 }, true},
		{"frames that cannot be held", func(c *Config) { c.MaxFrameBytes = 1 << 30 }, false},
		{"a negative time-out", func(c *Config) { c.IdleTimeout = -1 }, false},
		{"a negative limit", func(c *Config) { c.MaxLinks = -1 }, false},
		{"more sessions than channels", func(c *Config) { c.MaxSessions = 1 << 16 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			if _, err := New(cfg); (err == nil) != tt.ok {
				t.Errorf("the error is %v", err)
			}
		})
	}
	registry := prometheus.NewRegistry()
	cfg := good
	cfg.Metrics = registry
	testkit.Must(t, testkit.Err(New(cfg)))
	if _, err := New(cfg); err == nil {
		t.Error("two servers share their metrics")
	}
}

// distant is a connection of another machine's.
func (f *fixture) distant() net.Conn {
	client, server := net.Pipe()
	f.serveConn(addressed{server, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}})
	return client
}

// R2: of the connections that clients may have one policy has half, and others find room beside it.
func TestOneHolderHasHalfOfTheConnections(t *testing.T) {
	holders := []string{"greedy", "greedy", "other"}
	h := accept(&sink{}, nil)
	h.strangers = true
	h.connected = func(c *Conn) error { return c.Know(holders[int(c.ID()[0]-'1')]) }
	f := serve(t, h, func(c *Config) { c.Admission = admission.New(admission.Limits{}).Listener(2) })
	var peers []*rawPeer
	for range holders {
		p := newRawPeer(t, f.distant())
		p.open()
		if len(peers) == 1 {
			why := p.expectClose(ConditionResourceLimitExceeded)
			testkit.Equal(t, why.Description,
				"The connection is refused: this policy or token has as many connections as one may have, which is 1. Please wait and try again.")
		} else {
			p.send(0, newBegin())
			expect[wire.Begin](p)
		}
		peers = append(peers, p)
	}
	testkit.Equal(t, f.refused(reasonConnections), 1, "refused")
}

// Beyond the limit a client is told so when it shows a right, whoever else is there.
func TestTooManyClients(t *testing.T) {
	f := serve(t, accept(&sink{}, nil), func(c *Config) { c.Admission = admission.New(admission.Limits{}).Listener(1) })
	raw := func() *rawPeer { return newRawPeer(t, f.distant()) }
	first := raw()
	first.open()
	refused := raw()
	refused.open()
	refused.expectClose(ConditionResourceLimitExceeded)
	refused.send(0, &wire.Close{})
	refused.expectGone()
	testkit.Equal(t, f.refused(reasonConnections), 1, "refused")
	// Who leaves makes room, as soon as the server has noticed.
	first.leave()
	for opened := false; !opened; {
		p := raw()
		p.open()
		p.send(0, newBegin())
		_, opened = p.next().body.(*wire.Begin)
		p.leave()
	}
}

// Beyond the limit a stranger is told so; when too many ask at once they are just closed.
func TestTooManyStrangers(t *testing.T) {
	h := accept(&sink{}, nil)
	h.strangers = true
	f := serve(t, h, func(c *Config) {
		c.Admission, c.Auth = admission.New(admission.Limits{Strangers: 1}).Listener(10), checker{}
	})
	raw := func() *rawPeer { return newRawPeer(t, f.distant()) }
	f.raw().open() // one within the process, which makes no room for others

	refused := raw()
	refused.open()
	refused.expectClose(ConditionConnectionForced) // clients come again
	refused.send(0, &wire.Close{})
	refused.expectGone()
	// Whatever it shows, nobody looks at it.
	_, err := azure.NewConn(t.Context(), f.distant(), &azure.ConnOptions{SASLType: azure.SASLTypePlain("x", "y")})
	testkit.Must(t, err)

	for range 2 * maxRefusing {
		raw()
	}
	for f.refused(reasonConnections) < 2+2*maxRefusing {
		runtime.Gosched()
	}
	if n := len(f.conns()); n > 1+maxRefusing {
		t.Errorf("%d connections are held", n)
	}
	testkit.Equal(t, testutil.ToFloat64(f.server.metrics.connections), 1, "connections are shown")
	// Who becomes a client makes room for the next.
	for c := range f.conns() {
		if c.refusal == nil {
			testkit.Must(t, c.Know("somebody"))
		}
	}
	raw().open()
}

func TestServeEndsWithItsListenerContextOrServer(t *testing.T) {
	ends := map[string]func(f *fixture, l net.Listener, cancel func()){
		"listener": func(_ *fixture, l net.Listener, _ func()) { l.Close() },
		"context":  func(_ *fixture, _ net.Listener, cancel func()) { cancel() },
		"server":   func(f *fixture, _ net.Listener, _ func()) { f.server.Stop(context.Background()) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f := serve(t, accept(&sink{}, nil))
			l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			served := make(chan error, 1)
			go func() { served <- f.server.Serve(ctx, l) }()
			nc := testkit.Value(net.Dial("tcp", l.Addr().String()))(t)
			p := newRawPeer(t, nc)
			p.open()
			p.send(0, &wire.Close{})
			p.expectClose("")
			p.expectGone()
			end(f, l, cancel)
			testkit.Must(t, receive(t, served, "the end of Serve"))
			if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
				t.Error("still listening")
			}
		})
	}
	t.Run("stopped before", func(t *testing.T) {
		f := serve(t, accept(&sink{}, nil))
		testkit.Must(t, f.server.Stop(t.Context()))
		l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		testkit.Must(t, f.server.Serve(t.Context(), l))
	})
}

// scripted is a listener that gives errors.
type scripted struct {
	net.Listener
	errs []error
}

func (s *scripted) Accept() (net.Conn, error) {
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, err
}

func (s *scripted) Close() error { return nil }

// temporary is what a listener says when the process has no file to spare.
type temporary struct{ error }

func (temporary) Temporary() bool { return true }

func TestServeSurvivesWhatPasses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := serve(t, accept(nil, nil))
		passing, fatal := temporary{errors.New("too many open files")}, errors.New("no such network")
		err := f.server.Serve(t.Context(), &scripted{errs: []error{passing, passing, fatal}})
		testkit.MustErrorIs(t, err, fatal)
		f.stop()
	})
}

// TestStorm starts and stops everything at once, in every order.
func TestStorm(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		storm(t)
	}
}

func storm(t *testing.T) {
	var attached, closed, connected, disconnected atomic.Int64
	counting := func() { closed.Add(1) }
	h := accept(nil, nil)
	h.connected = func(*Conn) error { connected.Add(1); return nil }
	h.disconnected = func() { disconnected.Add(1) }
	h.attach = func(l *Link) (Terminus, error) {
		attached.Add(1)
		if l.Request().Role == wire.RoleSender {
			return Terminus{Sink: &sink{deliver: func(d *Delivery) { go d.Accept() }, onClose: counting}}, nil
		}
		out := endless(nil, 100)
		out.onClose = counting
		if rand.IntN(3) == 0 {
			go l.Detach(&Error{Condition: ConditionStolen})
		}
		return Terminus{Source: out}, nil
	}
	f := serve(t, h)
	address := f.listen(nil)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { stormClient(t.Context(), address) })
	}
	stop := rand.IntN(2) == 0
	if stop {
		f.server.Stop(t.Context())
	}
	clients.Wait()
	f.stop()
	if attached.Load() != closed.Load() || connected.Load() != disconnected.Load() {
		t.Fatalf("%d links attached, %d closed; %d connections, %d ended",
			attached.Load(), closed.Load(), connected.Load(), disconnected.Load())
	}
	m := f.server.metrics
	for name, g := range map[string]prometheus.Gauge{
		"connections": m.connections, "sessions": m.sessions, "senders": m.senders, "receivers": m.receivers,
	} {
		testkit.MustEqual(t, testutil.ToFloat64(g), 0, "%s are left", name)
	}
}

// stormClient does a little of everything. Errors are expected: the server may stop.
func stormClient(ctx context.Context, address string) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	conn, err := azure.NewConn(ctx, nc, nil)
	if err != nil {
		nc.Close()
		return
	}
	defer conn.Close()
	for range 3 {
		session, err := conn.NewSession(ctx, nil)
		if err != nil {
			return
		}
		if s, err := session.NewSender(ctx, "hub", nil); err == nil {
			s.Send(ctx, azure.NewMessage([]byte("x")), nil)
			if rand.IntN(2) == 0 {
				s.Close(ctx)
			}
		}
		if r, err := session.NewReceiver(ctx, "hub", &azure.ReceiverOptions{Credit: 10}); err == nil {
			for range rand.IntN(30) {
				if _, err := r.Receive(ctx, nil); err != nil {
					break
				}
			}
		}
		switch rand.IntN(3) {
		case 0:
			session.Close(ctx)
		case 1:
			nc.Close() // it vanishes
			return
		}
	}
}
