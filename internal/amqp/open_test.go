package amqp

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAnswerToAnOpen(t *testing.T) {
	var seen *Conn
	h := accept(nil, nil)
	h.connected = func(c *Conn) error { seen = c; return nil }
	p := serve(t, h).raw()
	o := p.open()
	if o.MaxFrameSize.Value != 65536 || o.ChannelMax.Value != 4999 || o.IdleTimeout.Value != 60000 {
		t.Errorf("got %+v", o)
	}
	if !strings.HasPrefix(o.ContainerID, "eventyard-") || o.Hostname.Set {
		t.Errorf("got container %q, hostname %v", o.ContainerID, o.Hostname)
	}
	p.barrier()
	if seen.ID() != "1" || seen.Hostname() != "yard.example.test" || seen.Identity() != (Identity{}) || seen.Log() == nil {
		t.Errorf("the handler saw %q, %q, %+v", seen.ID(), seen.Hostname(), seen.Identity())
	}
	if seen.Context().Err() != nil {
		t.Error("the connection's context has ended")
	}
	p.send(0, &wire.Close{})
	p.expectClose("")
	p.expectGone()
	receive(t, seen.Context().Done(), "the end of the context")
}

// Python sends open, begin and attach before it has read anything; others may send the
// whole SASL exchange ahead as well.
func TestEverythingAtOnce(t *testing.T) { // H8
	p := serve(t, accept(&sink{}, nil)).raw()
	b := append([]byte(nil), wire.ProtocolSASL[:]...)
	b = appendFrame(b, 0, &wire.SASLInit{Mechanism: "ANONYMOUS", HasResponse: true}, nil)
	b = append(b, wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
	b = appendFrame(b, 1, newBegin(), nil)
	b = appendFrame(b, 1, sender("s", 1), nil)
	b = appendFrame(b, 1, message(1, 0), []byte("hello"))
	p.write(b)
	for _, want := range []wire.ProtocolHeader{wire.ProtocolSASL, wire.ProtocolAMQP} {
		testkit.MustEqual(t, receive(t, p.headers, "header"), want, "got header")
	}
	expect[wire.Open](p)
	testkit.MustEqual(t, expect[wire.Begin](p).RemoteChannel, wire.Some(uint16(1)))
	if a := expect[wire.Attach](p); a.Handle != 1 {
		t.Fatalf("got %+v", a)
	}
	expect[wire.Flow](p)
	testkit.MustEqual(t, expect[wire.Disposition](p).State.Outcome, wire.OutcomeAccepted)
}

// .NET offers MSSBCBS and nothing else, so it has to be among the mechanisms; and the
// mechanisms have to come before the client says anything.
func TestMechanisms(t *testing.T) { // H8
	tests := []struct {
		name string
		auth Authenticator
		want []wire.Symbol
	}{
		{"nobody checks", nil, []wire.Symbol{"MSSBCBS", "ANONYMOUS"}},
		{"somebody checks", checker{}, []wire.Symbol{"MSSBCBS", "ANONYMOUS", "PLAIN"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := serve(t, accept(nil, nil), func(c *Config) { c.Auth = tt.auth }).raw()
			p.write(wire.ProtocolSASL[:])
			receive(t, p.headers, "header")
			got := receive(t, p.sasl, "mechanisms").body.([]wire.Symbol)
			testkit.MustSlices(t, got, tt.want)
			p.send(0, &wire.SASLInit{Mechanism: "MSSBCBS"})
			if got := receive(t, p.sasl, "outcome").body; got != wire.SASLOK {
				t.Fatalf("got outcome %v", got)
			}
			p.open()
		})
	}
}

func TestRefusedBySASL(t *testing.T) {
	tests := []struct {
		name string
		init wire.SASLInit
		want uint8
	}{
		{"wrong password", wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00policy\x00no"), HasResponse: true}, wire.SASLAuth},
		{"nobody can tell", wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00policy\x00later"), HasResponse: true}, wire.SASLTemp},
		{"no response", wire.SASLInit{Mechanism: "PLAIN"}, wire.SASLAuth},
		{"no user", wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00\x00key"), HasResponse: true}, wire.SASLAuth},
		{"too many parts", wire.SASLInit{Mechanism: "PLAIN", InitialResponse: []byte("\x00policy\x00key\x00"), HasResponse: true}, wire.SASLAuth},
		{"no certificate", wire.SASLInit{Mechanism: "EXTERNAL"}, wire.SASLAuth},
		{"unknown mechanism", wire.SASLInit{Mechanism: "SCRAM-SHA-256"}, wire.SASLAuth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, accept(nil, nil), func(c *Config) { c.Auth = checker{} })
			p := f.raw()
			p.write(wire.ProtocolSASL[:])
			p.send(0, &tt.init)
			receive(t, p.sasl, "mechanisms")
			if got := receive(t, p.sasl, "outcome").body; got != tt.want {
				t.Fatalf("got outcome %v", got)
			}
			p.nc.Close()
			p.expectGone()
			testkit.Equal(t, f.refused(reasonAuth), 1, "not counted")
		})
	}
}

func TestWrongHeaders(t *testing.T) {
	tests := []struct {
		name         string
		header, want string
	}{
		{"AMQP's TLS layer", "AMQP\x02\x01\x00\x00", "AMQP\x03\x01\x00\x00"},
		{"AMQP 0-9-1", "AMQP\x00\x00\x09\x01", "AMQP\x03\x01\x00\x00"},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n", "AMQP\x03\x01\x00\x00"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "AMQP\x03\x01\x00\x00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, accept(nil, nil))
			p := f.raw()
			p.write([]byte(tt.header))
			if h := receive(t, p.headers, "header"); string(h[:]) != tt.want {
				t.Fatalf("got %q", h)
			}
			p.nc.Close()
			p.expectGone()
			testkit.Equal(t, f.refused(reasonHeader), 1, "not counted")
		})
	}
}

func TestWrongHeaderAfterSASL(t *testing.T) {
	p := serve(t, accept(nil, nil)).raw()
	p.write(wire.ProtocolSASL[:])
	p.send(0, &wire.SASLInit{Mechanism: "ANONYMOUS"})
	p.write(wire.ProtocolSASL[:]) // a second time
	receive(t, p.headers, "header")
	testkit.MustEqual(t, receive(t, p.headers, "header"), wire.ProtocolAMQP)
	p.nc.Close()
	p.expectGone()
}

func TestNotSASLWhereItIsDue(t *testing.T) {
	f := serve(t, accept(nil, nil))
	p := f.raw()
	p.write(wire.ProtocolSASL[:])
	p.send(0, &wire.Open{ContainerID: "test"})
	p.expectGone()
	testkit.Equal(t, f.refused(reasonFrame), 1, "not counted")
}

func TestGuessesWhatAStrangerIs(t *testing.T) {
	for header, want := range map[string]string{
		"\x16\x03\x01aaaaa":        "TLS on the plain port",
		"AMQP\x02\x01\x00\x00":     "AMQP's own TLS layer, which is not supported",
		"AMQP\x00\x00\x09\x01":     "another version of AMQP",
		"POST /ab":                 "HTTP",
		"\x00\x01\x02\x03\x04abcd": "unknown",
	} {
		testkit.Equal(t, guess(wire.ProtocolHeader([]byte(header[:8]))), want, "%q", header)
	}
}

func TestConnectionsThatEndWithAnError(t *testing.T) {
	handlersOwn := errors.New("no disk")
	tests := []struct {
		name    string
		handler error
		open    wire.Open
		after   []any
		want    wire.Symbol
	}{
		{"frames too small", nil, wire.Open{MaxFrameSize: wire.Some(uint32(511))}, nil, ConditionInvalidField},
		{"open twice", nil, wire.Open{}, []any{&wire.Open{ContainerID: "test"}}, ConditionIllegalState},
		{"refused by the handler", &Error{Condition: ConditionNotAllowed}, wire.Open{}, nil, ConditionNotAllowed},
		{"the handler fails", handlersOwn, wire.Open{}, nil, ConditionInternalError},
		{"unknown performative", nil, wire.Open{}, []any{[]byte{0x00, 0x53, 0x7f, 0xc0, 0x01, 0x00}}, ConditionNotImplemented},
		{"a section where a performative is due", nil, wire.Open{}, []any{[]byte{0x00, 0x53, 0x75, 0xa0, 0x00}}, ConditionNotImplemented},
		{"no described value", nil, wire.Open{}, []any{[]byte{0x40}}, ConditionDecodeError},
		{"a begin that is none", nil, wire.Open{}, []any{[]byte{0x00, 0x53, 0x11, 0xa1, 0x01, 'x'}}, ConditionDecodeError},
		{"an attach without a name", nil, wire.Open{}, []any{[]byte{0x00, 0x53, 0x12, 0xc0, 0x01, 0x00}}, ConditionDecodeError},
		{"a channel without a session", nil, wire.Open{}, []any{sender("s", 0)}, ConditionIllegalState},
		{"a session begun twice", nil, wire.Open{}, []any{newBegin(), newBegin()}, ConditionIllegalState},
		{"a handle beyond the limit", nil, wire.Open{}, []any{newBegin(), sender("s", 2049)}, ConditionFramingError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := accept(&sink{}, nil)
			h.connected = func(*Conn) error { return tt.handler }
			p := serve(t, h).raw()
			tt.open.ContainerID = "test"
			p.write(wire.ProtocolAMQP[:])
			ask[wire.Open](p, 0, append([]any{&tt.open}, tt.after...)...)
			if len(tt.after) > 1 {
				expect[wire.Begin](p)
			}
			p.expectClose(tt.want)
			p.send(0, &wire.Close{})
			p.expectGone()
		})
	}
}

func TestBeforeTheOpen(t *testing.T) {
	for _, body := range []any{newBegin(), sender("s", 0), &wire.End{}, message(0, 0), credit(0, 0, 1)} {
		p := serve(t, accept(&sink{}, nil)).raw()
		p.write(wire.ProtocolAMQP[:])
		ask[wire.Open](p, 0, body) // a close has to have one before it
		p.expectClose(ConditionIllegalState)
		p.nc.Close()
	}
}

func TestFrames(t *testing.T) {
	tests := []struct {
		name  string
		frame []byte
		want  wire.Symbol // empty: it is taken
	}{
		{"a heartbeat", []byte{0, 0, 0, 8, 2, 0, 0, 0}, ""},
		{"a heartbeat with a longer header", []byte{0, 0, 0, 12, 3, 0, 0, 0, 1, 2, 3, 4}, ""},
		{"larger than ours", []byte{0, 1, 0, 1, 2, 0, 0, 0}, ConditionFramingError},
		{"huge", []byte{0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0}, ConditionFramingError},
		{"smaller than its header", []byte{0, 0, 0, 7, 2, 0, 0, 0}, ConditionFramingError},
		{"body inside the header", []byte{0, 0, 0, 8, 1, 0, 0, 0}, ConditionFramingError},
		{"body behind the frame", []byte{0, 0, 0, 8, 3, 0, 0, 0}, ConditionFramingError},
		{"of SASL", []byte{0, 0, 0, 8, 2, 1, 0, 0}, ConditionFramingError},
		{"of no type", []byte{0, 0, 0, 8, 2, 9, 0, 0}, ConditionFramingError},
		{"with a begin on a high channel", appendFrame(nil, 5000, newBegin(), nil), ConditionFramingError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, accept(&sink{}, nil))
			p := f.raw()
			p.open()
			p.write(tt.frame)
			if tt.want == "" {
				p.barrier()
				return
			}
			p.expectClose(tt.want)
			p.nc.Close()
			p.expectGone()
			testkit.Equal(t, f.refused(reasonFrame), 1, "not counted")
		})
	}
}

// After our close all that comes is ignored, but for the peer's.
func TestFramesAfterOurClose(t *testing.T) {
	in := &sink{}
	p := serve(t, accept(in, nil)).raw()
	p.attachSender()
	p.send(7, sender("s", 0)) // no such session
	p.expectClose(ConditionIllegalState)
	p.transfer(0, message(0, 0), []byte("late"))
	p.send(0, newBegin(), sender("t", 1), &wire.End{}, &wire.Close{})
	p.expectGone()
	testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed once")
}

// A text that does not fit the smallest frame is cut short.
func TestLongErrorInASmallFrame(t *testing.T) {
	h := accept(nil, nil)
	h.attach = func(*Link) (Terminus, error) {
		return Terminus{}, &Error{Condition: ConditionNotFound, Description: strings.Repeat("very ", 500) + "long"}
	}
	p := serve(t, h).raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	ask[wire.Begin](p, 0, newBegin(), sender("s", 0))
	expect[wire.Attach](p)
	got := p.next()
	if d := got.body.(*wire.Detach); got.size > 512 || !strings.HasPrefix(d.Error.Description, "very very") {
		t.Fatalf("got %d bytes: %v", got.size, d.Error)
	}
}
