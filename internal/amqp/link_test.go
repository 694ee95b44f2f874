package amqp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAnswersToAttach(t *testing.T) { // H8
	some := wire.Some[uint64]
	tests := []struct {
		name     string
		request  func(a *wire.Attach)
		role     wire.Role
		terminus Terminus
		check    func(a *wire.Attach) bool
	}{
		{
			"modes that were asked for come back", func(a *wire.Attach) {
				a.SenderSettleMode, a.ReceiverSettleMode = wire.Some(wire.SenderMixed), wire.Some(wire.ReceiverSecond)
			}, wire.RoleSender, Terminus{},
			func(a *wire.Attach) bool {
				return a.SenderSettleMode == wire.Some(wire.SenderMixed) && a.ReceiverSettleMode == wire.Some(wire.ReceiverSecond)
			},
		},
		{
			"modes that were not are left out", func(*wire.Attach) {}, wire.RoleSender, Terminus{},
			func(a *wire.Attach) bool { return !a.SenderSettleMode.Set && !a.ReceiverSettleMode.Set },
		},
		{
			"a source that sends settled says so", func(a *wire.Attach) { a.SenderSettleMode = wire.Some(wire.SenderUnsettled) },
			wire.RoleReceiver, Terminus{Settled: true},
			func(a *wire.Attach) bool { return a.SenderSettleMode == wire.Some(wire.SenderSettled) },
		},
		{
			"a source's first delivery-count", func(*wire.Attach) {}, wire.RoleReceiver, Terminus{},
			func(a *wire.Attach) bool {
				return a.InitialDeliveryCount == wire.Some(uint32(0)) && !a.MaxMessageSize.Set
			},
		},
		{
			"our limit", func(*wire.Attach) {}, wire.RoleSender, Terminus{MaxMessageBytes: 1000},
			func(a *wire.Attach) bool { return a.MaxMessageSize == some(1000) && !a.InitialDeliveryCount.Set },
		},
		{
			"a smaller one of the peer's", func(a *wire.Attach) { a.MaxMessageSize = some(10) }, wire.RoleSender,
			Terminus{MaxMessageBytes: 1000}, func(a *wire.Attach) bool { return a.MaxMessageSize == some(10) },
		},
		{
			"zero is none", func(a *wire.Attach) { a.MaxMessageSize = some(0) }, wire.RoleSender,
			Terminus{MaxMessageBytes: 1000}, func(a *wire.Attach) bool { return a.MaxMessageSize == some(1000) },
		},
		{
			"what the end offers", func(*wire.Attach) {}, wire.RoleReceiver,
			Terminus{Offered: []wire.Symbol{"x"}, Properties: wire.Map{{Key: wire.Symbol("k"), Value: int64(7)}}},
			func(a *wire.Attach) bool {
				return cmp.Equal(a.OfferedCapabilities, []wire.Symbol{"x"}) &&
					cmp.Equal(a.Properties, wire.Map{{Key: wire.Symbol("k"), Value: int64(7)}})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := accept(nil, nil)
			h.attach = func(*Link) (Terminus, error) {
				tt.terminus.Sink, tt.terminus.Source = &sink{}, &source{}
				return tt.terminus, nil
			}
			p := serve(t, h).raw()
			p.begin()
			a := sender("n", 3)
			if tt.role == wire.RoleReceiver {
				a = receiver("n", 3)
			}
			tt.request(a)
			got := ask[wire.Attach](p, 0, a)
			if got.Name != "n" || got.Handle != 3 || got.Role == a.Role || !cmp.Equal(got.Source, a.Source) || !cmp.Equal(got.Target, a.Target) {
				t.Errorf("got %+v", got)
			}
			testkit.Equal(t, tt.check(got), true, "got %+v", got)
		})
	}
}

func TestWhatAHandlerSeesOfALink(t *testing.T) {
	h := accept(nil, nil)
	links := make(chan *Link, 1)
	target := ""
	h.attach = func(l *Link) (Terminus, error) {
		target = l.Request().Target.Address.Value
		links <- l
		return Terminus{Sink: &sink{}}, nil
	}
	p := serve(t, h).raw()
	p.open()
	p.send(5, newBegin(), sender("n", 3))
	l := receive(t, links, "Attach")
	if l.Session() != 5 || l.Request().Name != "n" || target != "hub" || l.Conn().ID() != "1" {
		t.Fatalf("got session %d, %+v", l.Session(), l.Request())
	}
}

// A refusal is an attach with neither source nor target, and a closing detach.
func TestRefusals(t *testing.T) { // H8
	tests := []struct {
		name   string
		err    error
		attach *wire.Attach
		want   wire.Symbol
	}{
		{"the handler's own", &Error{Condition: ConditionNotFound, Description: "gone"}, sender("x", 7), ConditionNotFound},
		{"the handler's own, wrapped", errors.Join(&Error{Condition: ConditionNotFound}), receiver("x", 7), ConditionNotFound},
		{"the handler fails", errors.New("no disk"), sender("x", 7), ConditionInternalError},
		{"a name that is taken", nil, sender("s", 7), ConditionNotAllowed},
		{"a transaction", nil, &wire.Attach{
			Name: "x", Handle: 7, Role: wire.RoleSender, InitialDeliveryCount: wire.Some(uint32(0)), Target: &wire.Target{Coordinator: true},
		}, ConditionNotImplemented},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := accept(&sink{}, nil)
			p := serve(t, h).raw()
			p.attachSender()
			if tt.err != nil {
				h.attach = func(*Link) (Terminus, error) { return Terminus{}, tt.err }
			}
			got := ask[wire.Attach](p, 0, tt.attach)
			want := &wire.Attach{Name: tt.attach.Name, Handle: 7, Role: !tt.attach.Role}
			testkit.Equal(t, cmp.Equal(got, want), true, "got %s", cmp.Diff(want, got))
			p.expectDetach(7, tt.want)
			// What the peer has sent meanwhile is ignored, and counts in the window.
			p.transfer(0, message(7, 0), []byte("ahead"))
			p.send(0, credit(7, 0, 10), &wire.Detach{Handle: 7, Closed: true})
			p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 1, Echo: true})
			testkit.Equal(t, expect[wire.Flow](p).NextIncomingID, wire.Some(uint32(1)))
			// The handle is free.
			h.attach = accept(&sink{}, nil).attach
			if a := ask[wire.Attach](p, 0, sender("y", 7)); a.Target == nil {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestHandlerGivesTheWrongEnd(t *testing.T) {
	in := &sink{}
	h := accept(nil, nil)
	h.attach = func(*Link) (Terminus, error) { return Terminus{Sink: in}, nil }
	p := serve(t, h).raw()
	p.begin()
	ask[wire.Attach](p, 0, receiver("r", 0))
	p.expectDetach(0, ConditionInternalError)
	testkit.Equal(t, in.closed.Load(), 1, "the end that was given was not closed")
}

func TestEqualNames(t *testing.T) {
	p := serve(t, accept(&sink{}, &source{})).raw()
	p.attachSender()
	// Java has the same name for both directions.
	ask[wire.Attach](p, 0, receiver("s", 1))
	// Another session is another world.
	ask[wire.Begin](p, 1, newBegin(), sender("s", 0))
	if a := expect[wire.Attach](p); a.Target == nil {
		t.Error("refused on another session")
	}
	expect[wire.Flow](p)
	// A link that has ended has no name any more.
	p.send(0, &wire.Detach{Handle: 0, Closed: true}, sender("s", 0))
	p.expectDetach(0, "")
	if a := expect[wire.Attach](p); a.Target == nil {
		t.Error("refused after a detach")
	}
}

func TestTooManyLinks(t *testing.T) {
	f := serve(t, accept(&sink{}, nil), func(c *Config) { c.MaxLinks = 2 })
	p := f.raw()
	p.attachSender()
	p.send(1, newBegin(), sender("s", 0)) // it is the connection's limit
	expect[wire.Begin](p)
	expect[wire.Attach](p)
	expect[wire.Flow](p)
	refused := func(handle uint32) {
		ask[wire.Attach](p, 0, sender("t", handle))
		p.expectDetach(handle, ConditionResourceLimitExceeded)
	}
	refused(1)
	testkit.Equal(t, f.refused(reasonLinks), 1, "not counted")
	p.send(0, &wire.Detach{Handle: 1, Closed: true})
	// The end of a session frees its links' places.
	ask[wire.End](p, 1, &wire.End{})
	ask[wire.Attach](p, 0, sender("t", 1))
	expect[wire.Flow](p)
	// Who asks again and again, and takes no notice, loses the connection.
	refused(2)
	refused(3)
	p.send(0, sender("t", 4))
	p.expectClose(ConditionResourceLimitExceeded)
}

// The answer has to fit a frame of the peer's.
func TestAnswerThatDoesNotFit(t *testing.T) {
	out := &source{}
	p := serve(t, accept(nil, out)).raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	a := receiver("r", 0)
	a.Source.Address = wire.Some(strings.Repeat("x", 600))
	ask[wire.Begin](p, 0, newBegin(), a)
	if a := expect[wire.Attach](p); a.Source != nil {
		t.Errorf("got %+v", a)
	}
	p.expectDetach(0, ConditionFrameSizeTooSmall)
	testkit.Equal(t, out.closed.Load(), 1, "the source was not closed")
}

// The place is free before the peer is answered, whatever ends the link (H5).
func TestClosedBeforeTheAnswer(t *testing.T) {
	ends := map[string]struct {
		send   any
		answer func(p *rawPeer)
	}{
		"detach":             {&wire.Detach{Handle: 0, Closed: true}, func(p *rawPeer) { p.expectDetach(0, "") }},
		"detach not closing": {&wire.Detach{Handle: 0}, func(p *rawPeer) { p.expectDetach(0, "") }},
		"end":                {&wire.End{}, func(p *rawPeer) { p.expectEnd("") }},
		"close":              {&wire.Close{}, func(p *rawPeer) { p.expectClose("") }},
	}
	for name, end := range ends {
		for _, role := range []string{"sink", "source"} {
			t.Run(role+" "+name, func(t *testing.T) {
				in, out := &sink{}, &source{}
				p := serve(t, accept(in, out)).raw()
				if role == "sink" {
					p.attachSender()
					in.onClose = func() { p.empty("Closed") }
				} else {
					p.attachReceiver()
					out.onClose = func() { p.empty("Closed") }
				}
				p.send(0, end.send)
				end.answer(p)
				testkit.Equal(t, in.closed.Load()+out.closed.Load(), 1, "closed")
			})
		}
	}
}

func TestConnectionLossClosesTheLinks(t *testing.T) { // H7
	in, out := &sink{}, &source{}
	gone := make(chan struct{})
	h := accept(in, out)
	h.disconnected = func() {
		testkit.Equal(t, in.closed.Load(), 1, "Disconnected came before the links were closed")
		testkit.Equal(t, out.closed.Load(), 1, "Disconnected came before the links were closed")
		close(gone)
	}
	p := serve(t, h).raw()
	p.attachSender()
	ask[wire.Attach](p, 0, receiver("r", 1))
	p.nc.Close()
	receive(t, gone, "Disconnected")
}

func TestDetachByUs(t *testing.T) {
	links := make(chan *Link, 2)
	in, out := &sink{}, &source{}
	h := accept(in, out)
	plain := h.attach
	h.attach = func(l *Link) (Terminus, error) { links <- l; return plain(l) }
	p := serve(t, h).raw()
	p.attachSender()
	ask[wire.Attach](p, 0, receiver("r", 1))
	sending, receiving := <-links, <-links

	sending.Detach(&Error{Condition: ConditionDetachForced})
	sending.Detach(&Error{Condition: ConditionInternalError}) // too late
	p.expectDetach(0, ConditionDetachForced)
	receiving.Detach(nil)
	p.expectDetach(1, "")
	testkit.ErrorIs(t, testkit.Err(receiving.Send(t.Context(), 1, nil)), ErrLinkEnded, "Send")
	testkit.ErrorIs(t, receiving.WaitCredit(t.Context()), ErrLinkEnded, "WaitCredit")
	// Until the peer's detach comes its frames are ignored; there is no second answer.
	p.transfer(0, message(0, 0), []byte("under way"))
	p.send(0, credit(1, 0, 10), &wire.Detach{Handle: 0, Closed: true}, &wire.Detach{Handle: 1, Closed: true})
	p.barrier()
	testkit.Equal(t, in.closed.Load(), 1, "closed")
	testkit.Equal(t, out.closed.Load(), 1, "closed")
	testkit.Equal(t, len(p.frames), 0, "frames too many")
}

// A link may be detached by another goroutine before its attach has been answered: a
// receiver that takes the place comes at any time.
func TestDetachBeforeTheAnswer(t *testing.T) { // H5
	in, out := &sink{}, &source{}
	h := accept(in, out)
	plain := h.attach
	h.attach = func(l *Link) (Terminus, error) {
		l.Detach(&Error{Condition: ConditionStolen})
		l.Detach(nil)
		return plain(l)
	}
	p := serve(t, h).raw()
	p.begin()
	p.send(0, receiver("r", 0), sender("s", 1))
	for handle := range uint32(2) {
		if a := expect[wire.Attach](p); a.Source == nil {
			t.Error("it looks like a refusal")
		}
		p.expectDetach(handle, ConditionStolen)
		p.send(0, &wire.Detach{Handle: handle, Closed: true})
	}
	p.barrier()
	testkit.Equal(t, in.closed.Load(), 1, "closed")
	testkit.Equal(t, out.closed.Load(), 1, "closed")
}

// To accept a link and end it at once is how epoch conflicts are told (H5).
func TestSourceThatReturns(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want wire.Symbol
	}{
		{"nothing", nil, ""},
		{"an error for the peer", &Error{Condition: ConditionStolen, Description: "text"}, ConditionStolen},
		{"an error of ours", errors.New("no disk"), ConditionInternalError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := &source{run: func(context.Context, *Link) error { return tt.err }}
			out.onClose = func() {}
			p := serve(t, accept(nil, out)).raw()
			p.attachReceiver()
			p.expectDetach(0, tt.want)
			testkit.Equal(t, out.closed.Load(), 1, "not closed before the detach")
		})
	}
}

func TestConnClose(t *testing.T) {
	conns := make(chan *Conn, 1)
	h := accept(&sink{}, &source{})
	h.connected = func(c *Conn) error { conns <- c; return nil }
	p := serve(t, h).raw()
	p.attachSender()
	c := <-conns
	c.Close(&Error{Condition: ConditionConnectionForced, Description: "enough"})
	c.Close(nil)
	p.expectDetach(0, ConditionConnectionForced)
	if e := p.expectClose(ConditionConnectionForced); e.Description != "enough" {
		t.Errorf("got %v", e)
	}
	receive(t, c.Context().Done(), "the end of the context")
	if e, ok := errors.AsType[*Error](context.Cause(c.Context())); !ok || e.Description != "enough" {
		t.Errorf("the context's cause is %v", context.Cause(c.Context()))
	}
	p.send(0, &wire.Close{})
	p.expectGone()
}
