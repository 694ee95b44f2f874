package amqp

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestAnswerToABegin(t *testing.T) {
	p := serve(t, accept(nil, nil)).raw()
	b := p.begin(func(b *wire.Begin) { b.NextOutgoingID, b.IncomingWindow = 42, 77 })
	want := wire.Begin{
		RemoteChannel: wire.Some(uint16(0)), NextOutgoingID: 1, IncomingWindow: 5000, OutgoingWindow: 77, HandleMax: wire.Some(uint32(2048)),
	}
	if b.RemoteChannel != want.RemoteChannel || b.NextOutgoingID != want.NextOutgoingID || b.IncomingWindow != want.IncomingWindow ||
		b.OutgoingWindow != want.OutgoingWindow || b.HandleMax != want.HandleMax {
		t.Fatalf("got %+v, want %+v", b, want)
	}
	p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 77, NextOutgoingID: 42, Echo: true})
	fl := expect[wire.Flow](p)
	if fl.NextIncomingID != wire.Some(uint32(42)) || fl.IncomingWindow != 5000 || fl.NextOutgoingID != 1 || fl.Handle.Set {
		t.Fatalf("got %+v", fl)
	}
}

// The session ends with all its links; its place and theirs are free before it is answered.
func TestEndOfASession(t *testing.T) { // H5
	in, out := &sink{}, &source{}
	p := serve(t, accept(in, out)).raw()
	p.attachSender()
	ask[wire.Attach](p, 0, receiver("r", 1))
	in.onClose = func() { p.empty("the sink was closed") }
	out.onClose = func() { p.empty("the source was closed") }
	p.send(0, &wire.End{Error: &Error{Condition: "amqp:session:window-violation"}})
	p.expectEnd("")
	testkit.MustEqual(t, in.closed.Load(), 1, "closed")
	testkit.MustEqual(t, out.closed.Load(), 1, "closed")
	in.onClose, out.onClose = nil, nil
	// The channel can be used again, and so can the names.
	ask[wire.Begin](p, 0, newBegin(), sender("s", 0))
	expect[wire.Attach](p)
}

// An end of what was never begun ends nothing: Azure's client for Go may send one when it was told to give up
// between asking for a session and writing that.
func TestEndWithoutABegin(t *testing.T) { // H5
	p := serve(t, accept(&sink{}, nil)).raw()
	p.attachSender()
	p.send(7, &wire.End{})
	ask[wire.Begin](p, 7, newBegin(), sender("t", 0))
	expect[wire.Attach](p)
	expect[wire.Flow](p)
	p.send(0, &wire.End{})
	p.expectEnd("")
}

// empty wants that nothing has come.
func (p *rawPeer) empty(when string) {
	select {
	case f := <-p.frames:
		p.t.Errorf("%v came before %s", f, when)
	default:
	}
}

// What is wrong with a session ends that session, and nothing else.
func TestSessionsThatEndWithAnError(t *testing.T) {
	tests := []struct {
		name string
		body any
		want wire.Symbol
	}{
		{"transfer without a link", message(9, 0), ConditionUnattachedHandle},
		{"detach without a link", &wire.Detach{Handle: 9}, ConditionUnattachedHandle},
		{"a handle beyond all tables", &wire.Detach{Handle: 1 << 31}, ConditionUnattachedHandle},
		{"a handle used twice", sender("t", 0), ConditionHandleInUse},
		{"transfer the wrong way", message(1, 0), ConditionNotAllowed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := &sink{}
			f := serve(t, accept(in, &source{}))
			p := f.raw()
			p.attachSender()
			ask[wire.Attach](p, 0, receiver("r", 1))
			p.send(0, tt.body)
			p.expectEnd(tt.want)
			testkit.Equal(t, in.closed.Load(), 1, "the sink was not closed")
			testkit.Equal(t, f.refused(reasonProtocol), 1, "not counted")
			// Until the peer's end all is ignored; then the channel is free.
			p.transfer(0, message(0, 0), []byte("late"))
			ask[wire.Begin](p, 0, &wire.Detach{Handle: 0}, &wire.End{}, newBegin())
		})
	}
}

// One client may still give credit to a link that it has just detached.
func TestCreditForALinkThatIsGone(t *testing.T) { // H8
	p := serve(t, accept(nil, &source{})).raw()
	p.begin()
	ask[wire.Attach](p, 0, receiver("r", 0))
	p.send(0, &wire.Detach{Handle: 0, Closed: true}, credit(0, 0, 100), receiver("r", 0))
	p.expectDetach(0, "")
	if a := expect[wire.Attach](p); a.Name != "r" || a.Source == nil {
		t.Errorf("the next link is answered with %+v", a)
	}
}

func TestTooManySessions(t *testing.T) {
	f := serve(t, accept(&sink{}, nil), func(c *Config) { c.MaxSessions = 2 })
	p := f.raw()
	p.open()
	for channel := range uint16(2) {
		ask[wire.Begin](p, channel, newBegin())
	}
	ask[wire.Begin](p, 2, newBegin())
	p.expectEnd(ConditionResourceLimitExceeded)
	testkit.Equal(t, f.refused(reasonSessions), 1, "not counted")
	// Those there are go on, and one that ends makes room.
	ask[wire.Attach](p, 0, sender("s", 0))
	expect[wire.Flow](p)
	ask[wire.End](p, 1, &wire.End{})
	ask[wire.Begin](p, 1, newBegin())
	// Who goes on begins more than it ends loses the connection.
	ask[wire.Begin](p, 3, newBegin())
	p.expectEnd(ConditionResourceLimitExceeded)
	p.send(4, newBegin())
	p.expectClose(ConditionResourceLimitExceeded)
}

// The window is told anew when half of it is used, so that it never closes.
func TestIncomingWindow(t *testing.T) {
	p := serve(t, accept(&sink{deliver: func(*Delivery) {}}, nil)).raw()
	p.attachSender()
	for id := range uint32(incomingWindow / 2) {
		p.transfer(0, message(0, id), nil)
	}
	fl := expect[wire.Flow](p)
	if fl.NextIncomingID != wire.Some(uint32(incomingWindow/2)) || fl.IncomingWindow != incomingWindow || fl.Handle.Set {
		t.Fatalf("got %+v", fl)
	}
}

// sendAll sends count empty messages, telling of each.
func sendAll(count int, sent func()) *source {
	return &source{run: func(ctx context.Context, l *Link) error {
		for range count {
			if _, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, 0x40) }); err != nil {
				return err
			}
			if sent != nil {
				sent()
			}
		}
		<-ctx.Done()
		return nil
	}}
}

// We send no more transfers than the session wants, whatever its links want; a flow of the
// session opens the window for all of its links.
func TestOutgoingWindow(t *testing.T) {
	p := serve(t, accept(nil, sendAll(10, nil))).raw()
	p.begin(func(b *wire.Begin) { b.IncomingWindow = 3 })
	ask[wire.Attach](p, 0, receiver("a", 0), receiver("b", 1))
	expect[wire.Attach](p)
	give := func(handle uint32) *wire.Flow {
		fl := credit(handle, 0, 100)
		fl.IncomingWindow = 3
		return fl
	}
	p.send(0, give(0), give(1))
	for range 3 {
		expect[wire.Transfer](p)
	}
	p.send(3, newBegin()) // had there been a fourth it would come before this
	if b, ok := p.next().body.(*wire.Begin); !ok {
		t.Fatalf("got %+v, want no more transfers", b)
	}
	for seen := uint32(3); seen < 18; seen += 3 {
		p.send(0, &wire.Flow{NextIncomingID: wire.Some(firstOutgoing + seen), IncomingWindow: 3})
		for range 3 {
			expect[wire.Transfer](p)
		}
	}
	// A flow that was under way when the last three were sent opens nothing.
	p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing + 15)), IncomingWindow: 3})
	p.send(4, newBegin())
	if b, ok := p.next().body.(*wire.Begin); !ok {
		t.Fatalf("got %+v, want no more transfers", b)
	}
}

// Transfers are counted from where the peer begins, across the end of the numbers.
func TestIncomingNumbersWrapAround(t *testing.T) {
	p := serve(t, accept(&sink{}, nil)).raw()
	p.begin(func(b *wire.Begin) { b.NextOutgoingID = 0xffffffff })
	ask[wire.Attach](p, 0, sender("s", 0))
	expect[wire.Flow](p)
	p.transfer(0, message(0, 0xffffffff), nil)
	p.transfer(0, message(0, 0), nil)
	for _, id := range []uint32{0xffffffff, 0} {
		if d := expect[wire.Disposition](p); d.First != id || d.Last.Set {
			t.Fatalf("got %+v, want one of %d", d, id)
		}
	}
	p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing)), IncomingWindow: 1, Echo: true})
	testkit.MustEqual(t, expect[wire.Flow](p).NextIncomingID, wire.Some(uint32(1)))
}
