package amqp

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// strange is a server whose peers are strangers until they send a message that says "known".
func strange(t testing.TB, limits admission.Limits) *fixture {
	h := accept(&sink{deliver: func(d *Delivery) {
		if string(d.Payload) == "known" {
			testkit.Check(t, d.link.Conn().Know("somebody"))
		}
		d.Accept()
	}}, &source{})
	h.strangers = true
	return serve(t, h, func(c *Config) { c.Admission = admission.New(limits).Listener(DefaultConnections) })
}

// become shows a right on the link with handle 0, by the delivery of that number.
func (p *rawPeer) become(id uint32) {
	p.t.Helper()
	p.transfer(0, message(0, id), []byte("known"))
	expect[wire.Disposition](p)
}

// R2: before any right has been shown there are few sessions and links.
func TestStrangersHaveFewSessionsAndLinks(t *testing.T) {
	p := strange(t, admission.Limits{}).raw()
	p.attachSender()
	for n := range uint32(StrangerLinks - 1) {
		ask[wire.Attach](p, 0, receiver(fmt.Sprint("r", n), 1+n))
	}
	ask[wire.Attach](p, 0, receiver("more", StrangerLinks))
	p.expectDetach(StrangerLinks, ConditionResourceLimitExceeded)
	for n := range uint16(StrangerSessions - 1) {
		ask[wire.Begin](p, 1+n, newBegin())
	}
	ask[wire.Begin](p, StrangerSessions, newBegin())
	p.expectEnd(ConditionResourceLimitExceeded)
	p.send(StrangerSessions, &wire.End{})

	p.become(0)
	for n := range uint32(100) {
		ask[wire.Attach](p, 0, receiver(fmt.Sprint("later", n), 100+n))
		ask[wire.Begin](p, uint16(100+n), newBegin())
	}
}

// R2: tables are as long as the highest handle, which is low before a right has been shown.
func TestStrangersHaveLowHandles(t *testing.T) {
	p := strange(t, admission.Limits{}).raw()
	p.begin()
	p.send(0, receiver("r", strangerHandle+1))
	p.expectClose(ConditionFramingError)
}

// R2: before any right has been shown frames are small, though large enough for any token. A client
// that has shown one may send what it was told it may, whatever was in the buffer.
func TestStrangersHaveSmallFrames(t *testing.T) {
	p := strange(t, admission.Limits{}).raw()
	p.attachSender()
	p.transfer(0, message(0, 0), make([]byte, strangerFrameBytes-200))
	expect[wire.Disposition](p)
	// The right, and behind it, in one piece, the beginning of a large frame.
	large := appendFrame(nil, 0, message(0, 2), make([]byte, 60_000))
	p.write(append(appendFrame(nil, 0, message(0, 1), []byte("known")), large[:30_000]...))
	expect[wire.Disposition](p)
	p.write(large[30_000:])
	expect[wire.Disposition](p)

	p = strange(t, admission.Limits{}).raw()
	p.attachSender()
	p.write(appendFrame(nil, 0, message(0, 0), make([]byte, strangerFrameBytes))[:wire.FrameHeaderBytes])
	p.expectClose(ConditionFramingError)
}

// R2: a stranger that sends without end is cut off, though nothing of it is kept; who has shown a
// right is not.
func TestStrangersSendLittleInAll(t *testing.T) {
	part := message(0, 0)
	part.More = true
	p := strange(t, admission.Limits{}).raw()
	p.attachSender()
	for range strangerBytes / 30_000 {
		p.transfer(0, part, make([]byte, 30_000))
	}
	p.transfer(0, part, make([]byte, 30_000))
	p.expectClose(ConditionResourceLimitExceeded)

	p = strange(t, admission.Limits{}).raw()
	p.attachSender()
	p.become(0)
	part.DeliveryID = wire.Some(uint32(1))
	for range strangerBytes/30_000 + 1 {
		p.transfer(0, part, make([]byte, 30_000))
	}
	p.barrier()
}

// R2: what strangers have not finished takes no room from clients, nor that of one connection all.
func TestUnfinishedMessagesOfStrangers(t *testing.T) {
	f := strange(t, admission.Limits{StrangerBytes: 300 << 10})
	first, second, client := f.raw(), f.raw(), f.raw()
	part := message(0, 0)
	part.More = true
	for _, p := range []*rawPeer{first, second, client} {
		p.attachSender()
	}
	client.become(0)
	first.transfer(0, part, make([]byte, 20_000)) // takes 256 KiB
	first.barrier()
	second.transfer(0, part, make([]byte, 20_000))
	second.transfer(0, message(0, 0), nil)
	d := expect[wire.Disposition](second)
	testkit.Equal(t, d.State.Outcome, wire.OutcomeRejected)
	testkit.Equal(t, d.State.Error.Condition, ConditionServerBusy)

	part.DeliveryID = wire.Some(uint32(1))
	client.transfer(0, part, make([]byte, 20_000))
	client.transfer(0, message(0, 1), nil)
	testkit.Equal(t, expect[wire.Disposition](client).State.Outcome, wire.OutcomeAccepted)
	// Who leaves gives back what it held, as soon as the server has noticed.
	first.leave()
	for outcome := wire.OutcomeRejected; outcome != wire.OutcomeAccepted; {
		part.DeliveryID = wire.Some(part.DeliveryID.Value + 1)
		second.transfer(0, part, make([]byte, 20_000))
		second.transfer(0, message(0, part.DeliveryID.Value), nil)
		outcome = expect[wire.Disposition](second).State.Outcome
	}
}

// addressed is a connection that says where it comes from.
type addressed struct {
	net.Conn
	from net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.from }

// R2: where strangers have all permits, one of the address that has most makes room.
func TestStrangersMakeRoom(t *testing.T) {
	f := strange(t, admission.Limits{Strangers: 2})
	from := func(ip string) *rawPeer {
		client, server := net.Pipe()
		f.serveConn(addressed{server, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}})
		return newRawPeer(t, client)
	}
	first := from("10.0.0.1")
	first.open()
	second := from("10.0.0.1")
	second.open()
	newcomer := from("10.0.0.2")
	newcomer.open()
	second.expectClose(ConditionConnectionForced)
	ask[wire.Begin](first, 0, newBegin())
	ask[wire.Begin](newcomer, 0, newBegin())
}

// R2: a flood from one address has no more connections than its share, and some that are told to
// go; who shows a right is let in.
func TestAFloodFromOneAddress(t *testing.T) {
	const share = 4
	f := strange(t, admission.Limits{AddressStrangers: share})
	from := func() *rawPeer {
		client, server := net.Pipe()
		f.serveConn(addressed{server, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}})
		return newRawPeer(t, client)
	}
	for range 3 * maxRefusing {
		from()
	}
	testkit.Eventually(t, "all have come and few are held", func() bool {
		come, few := false, false
		f.server.conns.Locked(func(present int) {
			come, few = f.server.lastID == 3*maxRefusing, present <= share+maxRefusing
		})
		return come && few
	})
	p := from()
	p.open()
	ask[wire.Begin](p, 0, newBegin())
}

// R2: a link whose source has nothing to send costs no goroutine; when it is woken it sends.
func TestSourcesOnDemand(t *testing.T) {
	const links = 500
	attached := make(chan *Link, links)
	var out source
	out.run = func(ctx context.Context, l *Link) error {
		if l.Request().Name != "talks" {
			return nil
		}
		_, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, "x"...) })
		return err
	}
	h := &handler{attach: func(l *Link) (Terminus, error) {
		attached <- l
		return Terminus{Source: &out, OnDemand: true}, nil
	}}
	p := serve(t, h).raw()
	p.begin()
	before := runtime.NumGoroutine()
	for n := range uint32(links) {
		ask[wire.Attach](p, 0, receiver(fmt.Sprint("r", n), n))
		receive(t, attached, "link")
	}
	testkit.Eventually(t, "links without goroutines", func() bool { return runtime.NumGoroutine() <= before+5 })

	ask[wire.Attach](p, 0, receiver("talks", links))
	l := receive(t, attached, "link")
	p.send(0, credit(links, 0, 10)) // what the first look found
	expect[wire.Transfer](p)
	for range 5 {
		l.Wake()
		expect[wire.Transfer](p)
	}
	p.send(0, &wire.Detach{Handle: links, Closed: true})
	p.expectDetach(links, "")
	l.Wake() // nobody is there any more
	testkit.Equal(t, out.closed.Load(), 1, "closed")
}
