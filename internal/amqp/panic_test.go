package amqp

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// A handler that panics costs its connection, and nothing else.
func TestPanics(t *testing.T) {
	tests := []struct {
		name string
		make func() *handler
		// provoke goes as far as the panic, and takes what comes before the close.
		provoke func(p *rawPeer)
		quiet   bool // the connection is over anyway
	}{
		{"Connected", func() *handler {
			h := accept(nil, nil)
			h.connected = func(*Conn) error { panic("oops") }
			return h
		}, func(p *rawPeer) { p.open() }, false},
		{"Attach", func() *handler {
			h := accept(nil, nil)
			h.attach = func(*Link) (Terminus, error) { panic("oops") }
			return h
		}, func(p *rawPeer) { p.begin(); p.send(0, sender("s", 0)) }, false},
		{"Deliver", func() *handler {
			return accept(&sink{deliver: func(*Delivery) { panic("oops") }}, nil)
		}, func(p *rawPeer) { p.attachSender(); p.transfer(0, message(0, 0), nil) }, false},
		{"Deliver of several frames", func() *handler {
			return accept(&sink{deliver: func(*Delivery) { panic("oops") }}, nil)
		}, func(p *rawPeer) { p.attachSender(); p.part(0, 0, 0, 2, "a"); p.part(0, 0, 1, 2, "b") }, false},
		{"a sink's Closed", func() *handler {
			return accept(&sink{onClose: func() { panic("oops") }}, nil)
		}, func(p *rawPeer) { p.attachSender(); p.send(0, &wire.Detach{Handle: 0, Closed: true}) }, false},
		{"a source's Closed", func() *handler {
			return accept(nil, &source{onClose: func() { panic("oops") }})
		}, func(p *rawPeer) { p.attachReceiver(); p.send(0, &wire.Detach{Handle: 0, Closed: true}) }, false},
		{"Run", func() *handler {
			return accept(nil, &source{run: func(context.Context, *Link) error { panic("oops") }})
		}, func(p *rawPeer) { p.attachReceiver(); p.expectDetach(0, ConditionInternalError) }, false},
		{"Disconnected", func() *handler {
			h := accept(nil, nil)
			h.disconnected = func() { panic("oops") }
			return h
		}, func(p *rawPeer) { p.open(); p.send(0, &wire.Close{}); p.expectClose("") }, true},
		{"Closed at the end of the connection", func() *handler {
			return accept(&sink{onClose: func() { panic("oops") }}, nil)
		}, func(p *rawPeer) { p.attachSender(); p.nc.Close() }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log testkit.Buffer
			f := serve(t, tt.make(), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			p := f.raw()
			tt.provoke(p)
			if !tt.quiet {
				p.expectClose(ConditionInternalError)
				p.send(0, &wire.Close{})
			}
			p.expectGone()
			testkit.Must(t, f.server.Stop(t.Context()))
			if !strings.Contains(log.String(), "oops") || !strings.Contains(log.String(), "panic_test.go") {
				t.Errorf("the log has no panic with its stack: %s", log.String())
			}
			testkit.Equal(t, f.refused(reasonPanic), 1, "not counted")
		})
	}
}

// panicking is an authenticator.
type panicking struct{ checker }

func (panicking) Plain(context.Context, string, string, string) (any, error) { panic("oops") }

func TestPanicOfAnAuthenticator(t *testing.T) {
	f := serve(t, accept(nil, nil), func(c *Config) { c.Auth = panicking{} })
	p := f.raw()
	p.write(wire.ProtocolSASL[:])
	p.send(0, &wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00a\x00b"), HasResponse: true})
	p.expectGone()
	testkit.Equal(t, f.refused(reasonPanic), 1, "not counted")
}

// One sink's panic does not keep the others from being closed.
func TestPanicOfOneOfManyLinks(t *testing.T) {
	first := &sink{onClose: func() { panic("oops") }}
	second := &sink{}
	h := accept(nil, nil)
	h.attach = func(l *Link) (Terminus, error) {
		if l.Request().Handle == 0 {
			return Terminus{Sink: first}, nil
		}
		return Terminus{Sink: second}, nil
	}
	f := serve(t, h)
	p := f.raw()
	p.attachSender()
	ask[wire.Attach](p, 0, sender("t", 1))
	p.nc.Close()
	testkit.Must(t, f.server.Stop(t.Context()))
	testkit.Equal(t, first.closed.Load(), 1, "closed")
	testkit.Equal(t, second.closed.Load(), 1, "closed")
}
