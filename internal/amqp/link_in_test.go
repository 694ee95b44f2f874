package amqp

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// taken is a delivery as a sink saw it.
type taken struct {
	*Delivery
	payload string
}

// holding keeps what comes and settles nothing.
func holding(max uint64, credit uint32) (*handler, chan taken) {
	got := make(chan taken, 1<<12)
	in := &sink{deliver: func(d *Delivery) { got <- taken{d, string(d.Payload)} }}
	h := accept(nil, nil)
	h.attach = func(*Link) (Terminus, error) { return Terminus{Sink: in, MaxMessageBytes: max, Credit: credit}, nil }
	return h, got
}

// attachedTo is a client by which such a sink is sent to.
func attachedTo(t *testing.T, max uint64, credit uint32) (*rawPeer, chan taken) {
	t.Helper()
	h, got := holding(max, credit)
	p := serve(t, h).raw()
	p.attachSender()
	return p, got
}

func TestFirstCredit(t *testing.T) {
	for given, want := range map[uint32]uint32{0: 1000, 1: 1, 7: 7} {
		h, _ := holding(0, given)
		p := serve(t, h).raw()
		_, fl := p.attachSender(func(a *wire.Attach) { a.InitialDeliveryCount = wire.Some(uint32(0xfffffffe)) })
		if fl.LinkCredit != wire.Some(want) || fl.DeliveryCount != wire.Some(uint32(0xfffffffe)) || fl.Handle != wire.Some(uint32(0)) ||
			!fl.NextIncomingID.Set || fl.IncomingWindow == 0 {
			t.Errorf("credit %d: got %+v", given, fl)
		}
	}
}

// Credit counts what has been settled: a sink never has more than its credit in hand.
func TestCreditFollowsSettlement(t *testing.T) {
	p, got := attachedTo(t, 0, 4)
	var held []taken
	for id := range uint32(4) {
		p.transfer(0, message(0, id), nil)
		held = append(held, receive(t, got, "delivery"))
	}
	held[2].Accept()
	if d := expect[wire.Disposition](p); d.First != 2 || !d.Settled || d.Role != wire.RoleReceiver {
		t.Fatalf("got %+v", d)
	}
	// One place is free: less than half, so the peer is not told yet.
	held[0].Accept()
	// Two are: it is told, after the disposition.
	testkit.MustEqual(t, expect[wire.Disposition](p).First, 0)
	if fl := expect[wire.Flow](p); fl.DeliveryCount != wire.Some(uint32(4)) || fl.LinkCredit != wire.Some(uint32(2)) {
		t.Fatalf("got %+v", fl)
	}
	// An echo tells at any time.
	held[1].Accept()
	expect[wire.Disposition](p)
	echo := credit(0, 4, 0)
	echo.Echo = true
	testkit.MustEqual(t, ask[wire.Flow](p, 0, echo).LinkCredit, wire.Some(uint32(3)))
}

// A client that sends more than it may is not punished; it gets no credit either.
func TestMoreThanTheCredit(t *testing.T) {
	p, got := attachedTo(t, 0, 2)
	var held []taken
	for id := range uint32(5) {
		p.transfer(0, message(0, id), nil)
		held = append(held, receive(t, got, "delivery"))
	}
	for _, d := range held[:3] {
		d.Accept()
		expect[wire.Disposition](p)
	}
	held[3].Accept() // one in hand now, of two
	expect[wire.Disposition](p)
	if fl := expect[wire.Flow](p); fl.DeliveryCount != wire.Some(uint32(5)) || fl.LinkCredit != wire.Some(uint32(1)) {
		t.Fatalf("got %+v", fl)
	}
}

func TestDeliveryCountWrapsAround(t *testing.T) {
	h, got := holding(0, 2)
	p := serve(t, h).raw()
	_, fl := p.attachSender(func(a *wire.Attach) { a.InitialDeliveryCount = wire.Some(uint32(0xffffffff)) })
	testkit.MustEqual(t, fl.DeliveryCount.Value, 0xffffffff, "got %+v", fl)
	for id := range uint32(10) {
		p.transfer(0, message(0, id), nil)
		receive(t, got, "delivery").Accept()
		expect[wire.Disposition](p)
		if fl := expect[wire.Flow](p); fl.DeliveryCount.Value != id || fl.LinkCredit.Value != 2 {
			t.Fatalf("after %d deliveries: %+v", id+1, fl)
		}
	}
}

// A sender may skip numbers; that it has counted less than we have is not believed.
func TestSendersCount(t *testing.T) {
	p, _ := attachedTo(t, 0, 10)
	for _, step := range []struct{ says, want uint32 }{{5, 5}, {3, 5}, {5, 5}, {6, 6}} {
		fl := credit(0, step.says, 0)
		fl.Echo = true
		if fl := ask[wire.Flow](p, 0, fl); fl.DeliveryCount.Value != step.want || fl.LinkCredit.Value != 10 {
			t.Fatalf("it said %d: got %+v", step.says, fl)
		}
	}
}

func TestSettledDeliveries(t *testing.T) {
	p, got := attachedTo(t, 0, 2)
	m := message(0, 0)
	m.Settled = wire.Some(true)
	p.transfer(0, m, []byte("x"))
	d := receive(t, got, "delivery")
	testkit.Equal(t, d.Settled, true, "not told that it is settled")
	d.Reject(&Error{Condition: ConditionInternalError})
	// No disposition, but the credit is topped up.
	testkit.MustEqual(t, expect[wire.Flow](p).LinkCredit.Value, 2)
}

func TestSettlingTwiceCountsOnce(t *testing.T) {
	p, got := attachedTo(t, 0, 3)
	p.transfer(0, message(0, 0), nil)
	d := receive(t, got, "delivery")
	d.Accept()
	d.Accept()
	d.Reject(nil)
	testkit.MustEqual(t, expect[wire.Disposition](p).State.Outcome, wire.OutcomeAccepted)
	echo := credit(0, 1, 0)
	echo.Echo = true
	testkit.MustEqual(t, ask[wire.Flow](p, 0, echo).LinkCredit.Value, 3)
}

// Consecutive acceptances are told as one range when they wait for the writer together.
func TestRangesOfAcceptances(t *testing.T) {
	h, got := holding(0, 0)
	f := serve(t, h)
	client := f.pipe()
	p := quietPeer(t, client)
	var b []byte
	b = append(b, wire.ProtocolAMQP[:]...)
	b = appendFrame(b, 0, &wire.Open{ContainerID: "test"}, nil)
	b = appendFrame(b, 0, newBegin(), nil)
	b = appendFrame(b, 0, sender("s", 0), nil)
	for id := range uint32(8) {
		b = appendFrame(b, 0, message(0, id), nil)
	}
	p.write(b)
	// The peer takes one byte, so the writer is at work, and no more: it stays at it.
	first := make([]byte, 1)
	testkit.Must(t, testkit.Err(client.Read(first)))
	p.nc = readConn{client, io.MultiReader(bytes.NewReader(first), client)}
	var held []taken
	for range 8 {
		held = append(held, receive(t, got, "delivery"))
	}
	for _, id := range []int{0, 1, 2, 4, 5, 7, 3} {
		held[id].Accept()
	}
	held[6].Reject(&Error{Condition: ConditionNotAllowed})
	p.reader.Go(p.read)
	expect[wire.Open](p)
	expect[wire.Begin](p)
	expect[wire.Attach](p)
	expect[wire.Flow](p)
	type outcome struct {
		first, last uint32
		outcome     wire.Outcome
	}
	seen := map[outcome]bool{}
	for range 5 {
		d := expect[wire.Disposition](p)
		seen[outcome{d.First, d.Last.Or(d.First), d.State.Outcome}] = true
	}
	for _, want := range []outcome{
		{0, 2, wire.OutcomeAccepted}, {4, 5, wire.OutcomeAccepted}, {7, 7, wire.OutcomeAccepted}, {3, 3, wire.OutcomeAccepted},
		{6, 6, wire.OutcomeRejected},
	} {
		testkit.Equal(t, seen[want], true, "%+v is missing from %v", want, seen)
	}
}

func TestRejection(t *testing.T) {
	p, got := attachedTo(t, 0, 0)
	p.transfer(0, message(0, 9), nil)
	receive(t, got, "delivery").Reject(nil)
	d := expect[wire.Disposition](p)
	if d.First != 9 || d.State.Outcome != wire.OutcomeRejected || d.State.Error == nil || d.State.Error.Condition != ConditionInternalError {
		t.Fatalf("got %+v", d)
	}
}

// part sends frame i of n of a delivery.
func (p *rawPeer) part(handle, id uint32, i, n int, payload string) {
	p.t.Helper()
	tr := &wire.Transfer{Handle: handle, More: i < n-1}
	if i == 0 {
		tr = message(handle, id)
		tr.MessageFormat, tr.More = wire.Some(uint32(0x80013700)), n > 1
	}
	p.transfer(0, tr, []byte(payload))
}

func TestDeliveriesInSeveralFrames(t *testing.T) {
	p, got := attachedTo(t, 100, 0)
	p.part(0, 0, 0, 3, "one ")
	p.part(0, 0, 1, 3, "two ")
	p.part(0, 0, 2, 3, "three")
	d := receive(t, got, "delivery")
	if d.payload != "one two three" || d.ID != 0 || d.Format != 0x80013700 || d.Settled {
		t.Fatalf("got %q, %+v", d.payload, d.Delivery)
	}
	// The id may be repeated, as Python does; settled may come late.
	p.transfer(0, &wire.Transfer{Handle: 0, DeliveryID: wire.Some(uint32(1)), More: true}, []byte("a"))
	p.transfer(0, &wire.Transfer{Handle: 0, DeliveryID: wire.Some(uint32(1)), Settled: wire.Some(true)}, []byte("b"))
	if d := receive(t, got, "delivery"); d.payload != "ab" || !d.Settled {
		t.Fatalf("got %q, %+v", d.payload, d.Delivery)
	}
	// An empty message is one too.
	p.transfer(0, message(0, 2), nil)
	if d := receive(t, got, "delivery"); d.payload != "" || d.ID != 2 {
		t.Fatalf("got %q", d.payload)
	}
}

func TestInterleavedDeliveries(t *testing.T) {
	p, got := attachedTo(t, 1<<20, 0)
	const links = 5
	for handle := uint32(1); handle < links; handle++ {
		ask[wire.Attach](p, 0, sender(fmt.Sprint(handle), handle))
		expect[wire.Flow](p)
	}
	for i := range 10 {
		for handle := range uint32(links) {
			p.part(handle, 100+handle, i, 10, fmt.Sprintf("%d/%d ", handle, i))
		}
	}
	for handle := range uint32(links) {
		var want strings.Builder
		for i := range 10 {
			fmt.Fprintf(&want, "%d/%d ", handle, i)
		}
		if d := receive(t, got, "delivery"); d.payload != want.String() || d.ID != 100+handle {
			t.Fatalf("got %q, want %q", d.payload, want.String())
		}
	}
}

func TestAbortedDeliveries(t *testing.T) {
	p, got := attachedTo(t, 100, 2)
	p.part(0, 0, 0, 2, "never finished")
	p.transfer(0, &wire.Transfer{Handle: 0, Aborted: true}, nil)
	if fl := expect[wire.Flow](p); fl.DeliveryCount.Value != 1 || fl.LinkCredit.Value != 2 {
		t.Fatalf("its place was not freed: %+v", fl)
	}
	m := message(0, 1)
	m.Aborted = true // at once
	p.transfer(0, m, nil)
	if fl := expect[wire.Flow](p); fl.DeliveryCount.Value != 2 || fl.LinkCredit.Value != 2 {
		t.Fatalf("its place was not freed: %+v", fl)
	}
	p.transfer(0, message(0, 2), []byte("whole"))
	testkit.MustEqual(t, receive(t, got, "delivery").payload, "whole")
}

func TestMessagesThatAreTooLarge(t *testing.T) { // H2
	const want = "The received message (delivery-id:7, size:11 bytes) exceeds the limit (10 bytes) currently allowed on the link."
	tests := []struct {
		name string
		send func(p *rawPeer)
	}{
		{"in one frame", func(p *rawPeer) { p.transfer(0, message(0, 7), []byte("12345678901")) }},
		{"at the last frame", func(p *rawPeer) { p.part(0, 7, 0, 2, "1234567890"); p.part(0, 7, 1, 2, "1") }},
		{"before it", func(p *rawPeer) { p.part(0, 7, 0, 3, "1234567890"); p.part(0, 7, 1, 3, "1"); p.part(0, 7, 2, 3, "") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, got := holding(10, 2)
			f := serve(t, h)
			p := f.raw()
			p.attachSender()
			tt.send(p)
			d := expect[wire.Disposition](p)
			if d.First != 7 || d.State.Outcome != wire.OutcomeRejected || d.State.Error.Condition != ConditionMessageSizeExceeded || d.State.Error.Description != want {
				t.Fatalf("got %+v: %v", d, d.State.Error)
			}
			expect[wire.Flow](p) // its place is free again
			testkit.Equal(t, f.refused(reasonMessageSize), 1, "not counted")
			// The link goes on.
			p.transfer(0, message(0, 8), []byte("1234567890"))
			testkit.MustEqual(t, receive(t, got, "delivery").payload, "1234567890")
		})
	}
}

// A peer that does not listen on the delivery is told on the link.
func TestSettledMessageThatIsTooLarge(t *testing.T) {
	p, _ := attachedTo(t, 10, 2)
	m := message(0, 0)
	m.Settled = wire.Some(true)
	p.transfer(0, m, make([]byte, 11))
	for {
		if d, ok := p.next().body.(*wire.Detach); ok {
			p.checkError(d.Error, ConditionMessageSizeExceeded)
			return
		}
	}
}

// Where the sink names no limit the server's holds.
func TestTheServersOwnLimit(t *testing.T) {
	h, _ := holding(0, 2)
	p := serve(t, h, func(c *Config) { c.MaxMessageBytes = 20 }).raw()
	a, _ := p.attachSender()
	testkit.Equal(t, a.MaxMessageSize.Set, false, "it was told: %v", a.MaxMessageSize)
	p.transfer(0, message(0, 0), make([]byte, 21))
	testkit.MustEqual(t, expect[wire.Disposition](p).State.Outcome, wire.OutcomeRejected)
}

func TestDeliveryIDs(t *testing.T) {
	tests := []struct {
		name string
		send func(p *rawPeer)
	}{
		{"none", func(p *rawPeer) { p.transfer(0, &wire.Transfer{Handle: 0}, nil) }},
		{"none on the first of several", func(p *rawPeer) { p.transfer(0, &wire.Transfer{Handle: 0, More: true}, nil) }},
		{"another before the first is whole", func(p *rawPeer) {
			p.part(0, 0, 0, 2, "x")
			p.transfer(0, message(0, 1), nil)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := attachedTo(t, 0, 0)
			tt.send(p)
			p.expectDetach(0, ConditionInvalidField)
			p.send(0, &wire.Detach{Handle: 0, Closed: true})
			p.barrier() // the session goes on
		})
	}
}

// Unfinished messages of all links together are bounded.
func TestTooMuchUnfinished(t *testing.T) {
	h, _ := holding(32<<20, 0)
	f := serve(t, h, func(c *Config) { c.MaxFrameBytes = 2 << 20 })
	p := f.raw()
	p.attachSender()
	chunk := string(make([]byte, 2<<20-100))
	var writes sync.WaitGroup
	writes.Go(func() {
		for handle := range uint32(3) {
			if handle > 0 {
				p.nc.Write(appendFrame(nil, 0, sender(fmt.Sprint(handle), handle), nil))
			}
			for range 16 {
				p.nc.Write(appendFrame(nil, 0, &wire.Transfer{
					Handle: handle, DeliveryID: wire.Some(handle), More: true,
				}, []byte(chunk)))
			}
		}
	})
	for {
		if c, ok := p.next().body.(*wire.Close); ok {
			p.checkError(c.Error, ConditionServerBusy)
			break
		}
	}
	p.nc.Close()
	writes.Wait()
	testkit.Equal(t, f.refused(reasonParts), 1, "not counted")
}

// What is settled after the link's end is nobody's business any more: some clients end
// the session when they are told of a link that they do not have.
func TestSettledAfterTheEnd(t *testing.T) {
	p, got := attachedTo(t, 0, 0)
	p.transfer(0, message(0, 0), nil)
	p.transfer(0, message(0, 1), nil)
	first, second := receive(t, got, "delivery"), receive(t, got, "delivery")
	first.Accept()
	p.send(0, &wire.Detach{Handle: 0, Closed: true})
	// What was settled before is told before.
	testkit.MustEqual(t, expect[wire.Disposition](p).First, 0)
	p.expectDetach(0, "")
	second.Accept()
	second.Reject(nil)
	ask[wire.Begin](p, 1, newBegin())
}

// The bytes of a message in one frame are those that were read: none is copied.
func TestPayloadIsNotCopied(t *testing.T) {
	same := make(chan bool, 1)
	in := &sink{deliver: func(d *Delivery) {
		read := d.link.session.conn.reader.in.buf
		payload := d.Payload[:cap(d.Payload)]
		same <- &payload[len(payload)-1] == &read[:cap(read)][cap(read)-1]
		d.Accept()
	}}
	p := serve(t, accept(in, nil)).raw()
	p.attachSender()
	for _, size := range []int{1, 1000, 60_000} {
		p.transfer(0, message(0, 0), make([]byte, size))
		testkit.Equal(t, receive(t, same, "delivery"), true, "a payload of %d bytes was copied", size)
	}
}
