package amqp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sending gives receiving links to the test: it calls Send itself.
func sending() (*handler, chan *Link) {
	links := make(chan *Link, 64)
	return accept(nil, &source{run: func(ctx context.Context, l *Link) error {
		links <- l
		<-ctx.Done()
		return nil
	}}), links
}

// attached is a client that receives, and the link by which the test may send.
func attached(t *testing.T) (*rawPeer, *Link) {
	t.Helper()
	h, links := sending()
	p := serve(t, h).raw()
	p.attachReceiver()
	return p, receive(t, links, "Run")
}

// text sends a message of that text.
func text(s string) func(dst []byte, i int) []byte {
	return func(dst []byte, _ int) []byte { return append(dst, s...) }
}

// numbered sends messages of four bytes.
func numbered(dst []byte, i int) []byte { return binary.BigEndian.AppendUint32(dst, uint32(i)) }

// expectMessage puts the next message together.
func (p *rawPeer) expectMessage() (first *wire.Transfer, payload []byte, frames int) {
	p.t.Helper()
	for {
		f := p.next()
		tr, ok := f.body.(*wire.Transfer)
		testkit.MustEqual(p.t, ok, true, "got %v, want a transfer", f)
		if frames == 0 {
			first = tr
		} else if tr.DeliveryID.Set && tr.DeliveryID != first.DeliveryID {
			p.t.Fatalf("delivery %v inside delivery %v", tr.DeliveryID, first.DeliveryID)
		}
		testkit.MustEqual(p.t, tr.Settled.Value, true)
		testkit.MustEqual(p.t, tr.Aborted, false)
		payload = append(payload, f.payload...)
		frames++
		if !tr.More {
			return first, payload, frames
		}
	}
}

func TestTransfersAreCompleteAndSettled(t *testing.T) { // H8
	h, links := sending()
	p := serve(t, h).raw()
	p.attachReceiver(func(a *wire.Attach) { a.Handle = 3 })
	l := receive(t, links, "Run")
	p.send(0, credit(3, 0, 10))
	testkit.MustEqual(t, testkit.Value(l.Send(t.Context(), 3, numbered))(t), 3, "sent")
	for i := range uint32(3) {
		tr, payload, frames := p.expectMessage()
		if tr.Handle != 3 || tr.DeliveryID != wire.Some(i) || !bytes.Equal(tr.DeliveryTag, binary.BigEndian.AppendUint32(nil, i)) ||
			tr.MessageFormat != wire.Some(uint32(0)) || frames != 1 || binary.BigEndian.Uint32(payload) != i {
			t.Fatalf("message %d: %+v, % x", i, tr, payload)
		}
	}
}

func TestNothingIsSentWithoutCredit(t *testing.T) {
	p, l := attached(t)
	for _, step := range []struct{ count, credit, want uint32 }{
		{0, 2, 2}, {2, 1, 1}, {3, 5, 5},
		{3, 7, 2}, // five were under way when it said so
	} {
		p.send(0, credit(0, step.count, step.credit))
		testkit.Must(t, l.WaitCredit(t.Context()))
		n := testkit.Value(l.Send(t.Context(), 100, numbered))(t)
		testkit.MustEqual(t, uint32(n), step.want, "credit %d at %d: sent %d", step.credit, step.count, n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough waiting"))
	if _, err := l.Send(ctx, 1, numbered); err == nil || err.Error() != "send: enough waiting" {
		t.Fatalf("got %v", err)
	}
	if err := l.WaitCredit(ctx); err == nil {
		t.Fatal("credit from nowhere")
	}
	testkit.MustEqual(t, testkit.Value(l.Send(t.Context(), 0, nil))(t), 0, "nothing to send")
}

func TestOnlySourcesSend(t *testing.T) {
	links := make(chan *Link, 1)
	h := accept(&sink{}, nil)
	plain := h.attach
	h.attach = func(l *Link) (Terminus, error) {
		testkit.ErrorIs(t, testkit.Err(l.Send(t.Context(), 1, numbered)), errNotSource, "before the answer")
		links <- l
		return plain(l)
	}
	p := serve(t, h).raw()
	p.attachSender()
	l := <-links
	testkit.ErrorIs(t, testkit.Err(l.Send(t.Context(), 1, numbered)), errNotSource, "on a sink's link")
	testkit.ErrorIs(t, l.WaitCredit(t.Context()), errNotSource, "on a sink's link")
	l.Drained() // means nothing
}

func TestCreditArithmetic(t *testing.T) {
	tests := []struct {
		name      string
		count     uint32
		flow      *wire.Flow
		want      uint32
		unchanged bool
	}{
		{"plain", 10, credit(0, 10, 5), 5, false},
		{"some under way", 10, credit(0, 7, 5), 2, false},
		{"more under way than credit", 10, credit(0, 3, 5), 0, false},
		{"pause", 10, credit(0, 10, 0), 0, false},
		{"across the end of the numbers", 3, credit(0, math.MaxUint32-1, 10), 5, false},
		{"all there is", 10, credit(0, 10, math.MaxUint32), math.MaxUint32, false},
		{"a client that counts frames is ahead of us", 10, credit(0, 30, 5), 5, false},
		{"no delivery-count: none was seen", 2, &wire.Flow{LinkCredit: wire.Some(uint32(5))}, 3, false},
		{"no credit said", 2, &wire.Flow{DeliveryCount: wire.Some(uint32(2))}, 77, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &outgoing{link: &Link{session: &session{outgoing: 1}, state: linkAttached}, count: tt.count, credit: 77}
			o.flowLocked(tt.flow)
			testkit.MustEqual(t, o.credit, tt.want)
		})
	}
}

func TestOurCountWrapsAround(t *testing.T) {
	p, l := attached(t)
	c := l.Conn()
	c.mu.Lock()
	l.out.count, l.session.nextDelivery, l.session.nextOutgoing = math.MaxUint32-1, math.MaxUint32-1, math.MaxUint32
	c.mu.Unlock()
	fl := credit(0, math.MaxUint32-1, 4)
	fl.NextIncomingID, fl.IncomingWindow = wire.Some(uint32(math.MaxUint32)), 4
	p.send(0, fl)
	n := testkit.Value(l.Send(t.Context(), 4, numbered))(t)
	testkit.MustEqual(t, n, 4, "sent")
	for _, id := range []uint32{math.MaxUint32 - 1, math.MaxUint32, 0, 1} {
		if tr, _, _ := p.expectMessage(); tr.DeliveryID != wire.Some(id) {
			t.Fatalf("got %+v, want %d", tr, id)
		}
	}
	fl = credit(0, 0, 4) // two are under way
	fl.NextIncomingID, fl.IncomingWindow = wire.Some(uint32(1)), 4
	p.send(0, fl)
	n = testkit.Value(l.Send(t.Context(), 4, numbered))(t)
	testkit.MustEqual(t, n, 2, "sent")
}

func TestEchoOnALink(t *testing.T) {
	h, _ := sending()
	p := serve(t, h).raw()
	p.attachReceiver()
	fl := credit(0, 0, 9)
	fl.Echo = true
	got := ask[wire.Flow](p, 0, fl)
	if got.Handle != wire.Some(uint32(0)) || got.DeliveryCount != wire.Some(uint32(0)) || got.LinkCredit != wire.Some(uint32(9)) ||
		!got.NextIncomingID.Set || got.Drain || got.Echo {
		t.Fatalf("got %+v", got)
	}
}

// It is in virtual time, where a source that was dry has its moment to send, however busy the
// machine.
func TestDrain(t *testing.T) {
	drained := func(p *rawPeer, count uint32) {
		p.t.Helper()
		fl := expect[wire.Flow](p)
		if !fl.Drain || fl.DeliveryCount != wire.Some(count) || fl.LinkCredit != wire.Some(uint32(0)) {
			p.t.Fatalf("got %+v, want all drained at %d", fl, count)
		}
	}
	ask := func(count, n uint32) *wire.Flow {
		fl := credit(0, count, n)
		fl.Drain = true
		return fl
	}
	inBubble(t, func(t *testing.T) {
		h, links := sending()
		f := serve(t, h)
		f.server.drainWait = time.Hour
		p := f.raw()
		p.attachReceiver()
		l := receive(t, links, "Run")

		p.send(0, ask(0, 0)) // nothing to drain
		drained(p, 0)
		p.send(0, ask(0, 5))
		testkit.Must(t, l.WaitCredit(t.Context()))
		l.Drained() // the source has nothing
		drained(p, 5)
		p.send(0, ask(5, 5)) // the source has two
		n := testkit.Value(l.Send(t.Context(), 2, numbered))(t)
		l.Drained()
		for range n {
			p.expectMessage()
		}
		drained(p, 10)
		p.send(0, ask(10, 3)) // all of it is used
		testkit.Must(t, testkit.Err(l.Send(t.Context(), 3, numbered)))
		for range 3 {
			p.expectMessage()
		}
		drained(p, 13)
		l.Drained() // nothing is left to say
		p.send(0, credit(0, 13, 1))
		testkit.Must(t, l.WaitCredit(t.Context()))
		l.Drained() // nobody asked
		testkit.Must(t, testkit.Err(l.Send(t.Context(), 3, numbered)))
		p.expectMessage()
	})
}

// A message that is larger than a frame of the peer's goes in several.
func TestLargeMessagesInSmallFrames(t *testing.T) { // H8
	for _, frameSize := range []uint32{512, 4096, 1 << 30} {
		for _, size := range []int{0, 1, 400, 450, 460, 470, 500, 4000, 4096, 10_000, 65_480, 65_500, 200_000, 1 << 20} {
			t.Run(fmt.Sprintf("%d in %d", size, frameSize), func(t *testing.T) {
				h, links := sending()
				p := serve(t, h).raw()
				p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(frameSize) })
				ask[wire.Begin](p, 0, newBegin(), receiver("r", 0), credit(0, 0, 10))
				expect[wire.Attach](p)
				l := receive(t, links, "Run")
				body := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
				for sent := 0; sent < 2; {
					n, err := l.Send(t.Context(), 2-sent, func(dst []byte, _ int) []byte { return append(dst, body...) })
					testkit.Must(t, err)
					sent += n
				}
				for range 2 {
					if _, payload, _ := p.expectMessage(); !bytes.Equal(payload, body) {
						t.Fatalf("got %d bytes", len(payload))
					}
				}
			})
		}
	}
}

func TestNoFrameIsTooLarge(t *testing.T) {
	h, links := sending()
	f := serve(t, h)
	p := f.raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	ask[wire.Begin](p, 0, newBegin(), receiver("r", 0), credit(0, 0, 1<<20))
	expect[wire.Attach](p)
	l := receive(t, links, "Run")
	for size := range 1100 {
		_, err := l.Send(t.Context(), 1, func(dst []byte, _ int) []byte { return append(dst, make([]byte, size)...) })
		testkit.Must(t, err)
		for more := true; more; {
			f := p.next()
			if f.size > 512 {
				t.Fatalf("a frame of %d bytes for a message of %d", f.size, size)
			}
			more = f.body.(*wire.Transfer).More
		}
	}
}

// A message may need more frames than the window has: it goes on when the window opens.
func TestMessageLargerThanTheWindow(t *testing.T) {
	h, links := sending()
	f := serve(t, h)
	p := f.raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	b := newBegin()
	b.IncomingWindow = 2
	fl := credit(0, 0, 10)
	fl.IncomingWindow = 2
	ask[wire.Begin](p, 0, b, receiver("r", 0), fl)
	expect[wire.Attach](p)
	l := receive(t, links, "Run")
	body := bytes.Repeat([]byte("0123456789"), 300)
	sent := make(chan error, 1)
	go func() {
		n, err := l.Send(t.Context(), 2, func(dst []byte, _ int) []byte { return append(dst, body...) })
		if err == nil && n != 1 {
			err = fmt.Errorf("sent %d", n)
		}
		sent <- err
	}()
	var payload []byte
	for frames := uint32(0); ; {
		f := p.next()
		payload = append(payload, f.payload...)
		frames++
		if !f.body.(*wire.Transfer).More {
			break
		}
		if frames%2 == 0 {
			p.send(0, &wire.Flow{NextIncomingID: wire.Some(firstOutgoing + frames), IncomingWindow: 2})
		}
	}
	testkit.Must(t, receive(t, sent, "Send"))
	testkit.MustSlices(t, payload, body, "got %d bytes", len(payload))
}

// Where the window has room for some messages only, the next is not begun.
func TestWindowIsNotFilledWithHalves(t *testing.T) {
	h, links := sending()
	p := serve(t, h).raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	b := newBegin()
	b.IncomingWindow = 3
	fl := credit(0, 0, 10)
	fl.IncomingWindow = 3
	ask[wire.Begin](p, 0, b, receiver("r", 0), fl)
	expect[wire.Attach](p)
	l := receive(t, links, "Run")
	n, err := l.Send(t.Context(), 2, func(dst []byte, _ int) []byte { return append(dst, make([]byte, 800)...) })
	testkit.Must(t, err)
	testkit.MustEqual(t, n, 1, "sent … messages of two frames with a window of three")
	p.expectMessage()
}

// Whoever gives up in the middle of a message takes it back.
func TestSendGivenUpInTheMiddle(t *testing.T) {
	h, links := sending()
	p := serve(t, h).raw()
	p.open(func(o *wire.Open) { o.MaxFrameSize = wire.Some(uint32(512)) })
	b := newBegin()
	b.IncomingWindow = 1
	fl := credit(0, 0, 10)
	fl.IncomingWindow = 1
	ask[wire.Begin](p, 0, b, receiver("r", 0), fl)
	expect[wire.Attach](p)
	l := receive(t, links, "Run")
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, make([]byte, 1000)...) })
		sent <- err
	}()
	if tr := expect[wire.Transfer](p); !tr.More {
		t.Fatalf("got %+v", tr)
	}
	cancel()
	testkit.MustErrorIs(t, receive(t, sent, "Send"), context.Canceled)
	if tr := expect[wire.Transfer](p); !tr.Aborted || tr.DeliveryID != wire.Some(uint32(0)) {
		t.Fatalf("got %+v", tr)
	}
	p.send(0, &wire.Flow{NextIncomingID: wire.Some(uint32(firstOutgoing + 2)), IncomingWindow: 5})
	testkit.Must(t, testkit.Err(l.Send(t.Context(), 1, text("next"))))
	if tr, payload, _ := p.expectMessage(); tr.DeliveryID != wire.Some(uint32(1)) || string(payload) != "next" {
		t.Fatalf("got %+v", tr)
	}
}

// Nothing is sent on a link once Detach has returned.
func TestNothingAfterDetach(t *testing.T) { // H5
	started := make(chan *Link, 1)
	out := &source{run: func(ctx context.Context, l *Link) error {
		started <- l
		for {
			if _, err := l.Send(ctx, 10, numbered); err != nil {
				testkit.ErrorIs(t, err, ErrLinkEnded)
				return err
			}
		}
	}}
	p := serve(t, accept(nil, out)).raw()
	p.attachReceiver()
	p.send(0, credit(0, 0, 1<<30))
	l := receive(t, started, "Run")
	for range 1000 {
		expect[wire.Transfer](p)
	}
	l.Detach(&Error{Condition: ConditionStolen})
	for {
		switch body := p.next().body.(type) {
		case *wire.Transfer:
			continue
		case *wire.Detach:
			p.checkError(body.Error, ConditionStolen)
		default:
			t.Fatalf("got %+v", body)
		}
		break
	}
	ask[wire.Begin](p, 1, newBegin())
}

// endless sends until it is stopped, and counts.
func endless(sent *atomic.Int64, size int) *source {
	body := make([]byte, size)
	return &source{run: func(ctx context.Context, l *Link) error {
		for {
			n, err := l.Send(ctx, 100, func(dst []byte, _ int) []byte { return append(dst, body...) })
			if err != nil {
				return err
			}
			if sent != nil {
				sent.Add(int64(n))
			}
		}
	}}
}

// Links of one connection share it: none starves while others have always something to send.
func TestLinksTakeTurns(t *testing.T) {
	f := serve(t, accept(nil, endless(nil, 1000)))
	p := f.raw()
	p.begin()
	const links = 8
	for handle := range uint32(links) {
		p.send(0, receiver(fmt.Sprint(handle), handle), credit(handle, 0, 1<<30))
	}
	got := map[uint32]int{}
	for total := 0; ; total++ {
		f := p.next()
		if tr, ok := f.body.(*wire.Transfer); ok {
			got[tr.Handle]++
		}
		least := math.MaxInt
		for handle := range uint32(links) {
			least = min(least, got[handle])
		}
		if least >= 500 {
			return
		}
		if total > 100*links*500 {
			t.Fatalf("some link starves: %v", got)
		}
	}
}

// A peer that takes nothing stops its own connection, and no other.
func TestStuckConnectionStopsNobodyElse(t *testing.T) {
	var sent atomic.Int64
	f := serve(t, accept(nil, endless(&sent, 1000)))
	stuck := quietPeer(t, f.pipe())
	b := append([]byte(nil), wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: "stuck"}, nil)
	b = appendFrame(b, 0, newBegin(), nil)
	b = appendFrame(b, 0, receiver("r", 0), nil)
	b = appendFrame(b, 0, credit(0, 0, 1<<30), nil)
	b = appendFrame(b, 0, []byte(nil), nil) // one more, so that all before it has been taken
	stuck.write(b)

	p := f.raw()
	p.attachReceiver()
	p.send(0, credit(0, 0, 1<<30))
	for range 20_000 {
		expect[wire.Transfer](p)
	}
	// And what waits for the stuck one is bounded: it has gone wherever room was, and stopped.
	p.leave()
	for c := range f.conns() {
		c.mu.Lock()
		if n := len(c.out.buf); n > highWaterBytes+2000 {
			t.Errorf("%d bytes wait to be written", n)
		}
		c.mu.Unlock()
	}
}

// conns are the server's connections now.
func (f *fixture) conns() map[*Conn]struct{} {
	all := map[*Conn]struct{}{}
	for _, c := range f.server.conns.All() {
		all[c] = struct{}{}
	}
	return all
}

// A link without credit, and one whose session is closed, do not hold up another.
func TestLinkWithoutCreditStopsNobodyElse(t *testing.T) {
	f := serve(t, accept(nil, endless(nil, 1000)))
	p := f.raw()
	p.begin()
	p.send(0, receiver("none", 0), receiver("some", 1), credit(1, 0, 3))
	narrow := newBegin()
	narrow.IncomingWindow = 0
	p.send(1, narrow, receiver("narrow", 0))
	fl := credit(0, 0, 1<<30)
	fl.IncomingWindow = 0
	p.send(1, fl)
	p.send(0, receiver("all", 2), credit(2, 0, 1<<30))
	for got := 0; got < 10_000; {
		f := p.next()
		tr, ok := f.body.(*wire.Transfer)
		switch {
		case !ok:
		case f.channel == 0 && tr.Handle == 2:
			got++
		case f.channel == 0 && tr.Handle == 1 && tr.DeliveryID.Set:
		default:
			t.Fatalf("got %v", f)
		}
	}
}

// A handler's panic while it appends leaves whole frames behind it.
func TestPanicInAppendMessage(t *testing.T) {
	f := serve(t, accept(nil, &source{run: func(ctx context.Context, l *Link) error {
		_, err := l.Send(ctx, 3, func(dst []byte, i int) []byte {
			if i == 2 {
				panic("no such message")
			}
			return numbered(dst, i)
		})
		return err
	}}))
	p := f.raw()
	p.attachReceiver()
	p.send(0, credit(0, 0, 10))
	p.expectMessage()
	p.expectMessage()
	p.expectDetach(0, ConditionInternalError)
	p.expectClose(ConditionInternalError)
	testkit.Equal(t, f.refused(reasonPanic), 1, "not counted")
}
