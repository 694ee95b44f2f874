package amqp

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// frame is one that the server sent, decoded.
type frame struct {
	channel uint16
	body    any    // a *wire.Open and so on, or nil
	payload []byte // of a transfer
	size    int
}

func (f frame) String() string {
	if f.body == nil {
		return fmt.Sprintf("channel %d: empty frame", f.channel)
	}
	return fmt.Sprintf("channel %d: %T%+v", f.channel, f.body, f.body)
}

// rawPeer is a client that sends what the test says and nothing else.
type rawPeer struct {
	t       testing.TB
	nc      net.Conn
	headers chan wire.ProtocolHeader
	frames  chan frame // closed when the server has closed
	sasl    chan frame
	reader  sync.WaitGroup
}

// raw connects such a client, which reads all that comes.
func (f *fixture) raw() *rawPeer { return newRawPeer(f.t, f.pipe()) }

func newRawPeer(t testing.TB, nc net.Conn) *rawPeer {
	p := quietPeer(t, nc)
	p.reader.Go(p.read)
	return p
}

// quietPeer does not read until it is told to.
func quietPeer(t testing.TB, nc net.Conn) *rawPeer {
	p := &rawPeer{
		t: t, nc: nc,
		headers: make(chan wire.ProtocolHeader, 4), frames: make(chan frame, 1<<16), sasl: make(chan frame, 8),
	}
	t.Cleanup(p.leave)
	return p
}

// leave drops the connection.
func (p *rawPeer) leave() {
	p.nc.Close()
	p.reader.Wait()
}

func (p *rawPeer) read() {
	defer close(p.frames)
	for {
		var head [8]byte
		if _, err := io.ReadFull(p.nc, head[:]); err != nil {
			return
		}
		if string(head[:4]) == "AMQP" {
			p.headers <- head
			continue
		}
		h, err := wire.ReadFrameHeader(head[:])
		if err != nil {
			p.t.Errorf("the server's frame: %v", err)
			return
		}
		body := make([]byte, h.Size-8)
		if _, err := io.ReadFull(p.nc, body); err != nil {
			return
		}
		f, err := decode(h, body)
		if err != nil {
			p.t.Errorf("decode the server's frame % x: %v", body, err)
			return
		}
		if h.Type == wire.FrameSASL {
			p.sasl <- f
		} else {
			p.frames <- f
		}
	}
}

func decode(h wire.FrameHeader, body []byte) (frame, error) {
	f := frame{channel: h.Channel, size: int(h.Size)}
	if len(body) == 0 {
		return f, nil
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	if err != nil {
		return f, err
	}
	f.body, err = decodeBody(d, &r)
	f.payload = r.Rest()
	return f, err
}

func decodeBody(d wire.Descriptor, r *wire.Reader) (any, error) {
	switch d {
	case wire.DescriptorOpen:
		return pointer(r.ReadOpen())
	case wire.DescriptorBegin:
		return pointer(r.ReadBegin())
	case wire.DescriptorAttach:
		return pointer(r.ReadAttach())
	case wire.DescriptorFlow:
		return pointer(r.ReadFlow())
	case wire.DescriptorTransfer:
		return pointer(r.ReadTransfer())
	case wire.DescriptorDisposition:
		return pointer(r.ReadDisposition())
	case wire.DescriptorDetach:
		return pointer(r.ReadDetach())
	case wire.DescriptorEnd:
		return pointer(r.ReadEnd())
	case wire.DescriptorClose:
		return pointer(r.ReadClose())
	case wire.DescriptorSASLMechanisms:
		return r.ReadSASLMechanisms()
	case wire.DescriptorSASLOutcome:
		return r.ReadSASLOutcome()
	default:
		return nil, fmt.Errorf("unexpected performative 0x%x", uint64(d))
	}
}

func pointer[T any](v T, err error) (*T, error) { return &v, err }

// write sends bytes as they are.
func (p *rawPeer) write(b []byte) {
	p.t.Helper()
	testkit.Must(p.t, testkit.Err(p.nc.Write(b)), "write to the server")
}

// send sends performatives on a channel, in one piece.
func (p *rawPeer) send(channel uint16, bodies ...any) {
	p.t.Helper()
	var b []byte
	for _, body := range bodies {
		b = appendFrame(b, channel, body, nil)
	}
	p.write(b)
}

// transfer sends a transfer with a message, or a part of one.
func (p *rawPeer) transfer(channel uint16, t *wire.Transfer, payload []byte) {
	p.t.Helper()
	p.write(appendFrame(nil, channel, t, payload))
}

func appendFrame(dst []byte, channel uint16, body any, payload []byte) []byte {
	kind := wire.FrameAMQP
	if _, ok := body.(*wire.SASLInit); ok {
		kind = wire.FrameSASL
	}
	dst, mark := wire.BeginFrame(dst, kind, channel)
	return wire.EndFrame(append(appendBody(dst, body), payload...), mark)
}

func appendBody(dst []byte, body any) []byte {
	switch b := body.(type) {
	case *wire.SASLInit:
		return wire.AppendSASLInit(dst, b)
	case *wire.Open:
		return wire.AppendOpen(dst, b)
	case *wire.Begin:
		return wire.AppendBegin(dst, b)
	case *wire.Attach:
		return wire.AppendAttach(dst, b)
	case *wire.Flow:
		return wire.AppendFlow(dst, b)
	case *wire.Transfer:
		return wire.AppendTransfer(dst, b)
	case *wire.Disposition:
		return wire.AppendDisposition(dst, b)
	case *wire.Detach:
		return wire.AppendDetach(dst, b)
	case *wire.End:
		return wire.AppendEnd(dst, b)
	case *wire.Close:
		return wire.AppendClose(dst, b)
	case []byte:
		return append(dst, b...)
	default:
		panic(fmt.Sprintf("no performative: %T", body))
	}
}

// next is the server's next frame; heartbeats are passed over.
func (p *rawPeer) next() frame {
	p.t.Helper()
	for {
		select {
		case f, ok := <-p.frames:
			testkit.MustEqual(p.t, ok, true, "the server has closed the connection")
			if f.body != nil {
				return f
			}
		case <-time.After(patience):
			p.t.Fatal("no frame came")
		}
	}
}

// expect is the next frame's body, which has to be of that type.
func expect[T any](p *rawPeer) *T {
	p.t.Helper()
	f := p.next()
	body, ok := f.body.(*T)
	testkit.MustEqual(p.t, ok, true, "got %v, want a %T", f, body)
	return body
}

// ask sends performatives and gives the answer, which has to be of that type.
func ask[T any](p *rawPeer, channel uint16, bodies ...any) *T {
	p.t.Helper()
	p.send(channel, bodies...)
	return expect[T](p)
}

// expectClose is expect for a close that has to carry an error, if one is wanted.
func (p *rawPeer) expectClose(want wire.Symbol) *Error {
	p.t.Helper()
	return p.checkError(expect[wire.Close](p).Error, want)
}

func (p *rawPeer) expectEnd(want wire.Symbol) *Error {
	p.t.Helper()
	return p.checkError(expect[wire.End](p).Error, want)
}

func (p *rawPeer) expectDetach(handle uint32, want wire.Symbol) *Error {
	p.t.Helper()
	d := expect[wire.Detach](p)
	testkit.MustEqual(p.t, d.Handle, handle)
	testkit.MustEqual(p.t, d.Closed, true)
	return p.checkError(d.Error, want)
}

// checkError wants the condition, none at all if that is empty.
func (p *rawPeer) checkError(got *Error, want wire.Symbol) *Error {
	p.t.Helper()
	if got == nil && want == "" {
		return nil
	}
	if got == nil || got.Condition != want {
		p.t.Fatalf("got error %v, want %q", got, want)
	}
	return got
}

// expectGone wants the connection closed, with nothing more said.
func (p *rawPeer) expectGone() {
	p.t.Helper()
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				return
			}
			if f.body != nil {
				p.t.Fatalf("got %v, want the connection closed", f)
			}
		case <-time.After(patience):
			p.t.Fatal("the connection was not closed")
		}
	}
}

// barrier waits until the server has worked on all that was sent: it begins a session of
// its own and ends it. Frames that come before are dropped.
func (p *rawPeer) barrier() {
	p.t.Helper()
	p.send(4999, newBegin(), &wire.End{})
	for {
		if _, ok := p.next().body.(*wire.End); ok {
			return
		}
	}
}

func newBegin() *wire.Begin {
	return &wire.Begin{NextOutgoingID: 0, IncomingWindow: 5000, OutgoingWindow: 5000}
}

// open goes as far as an open connection without SASL, with frames of any size.
func (p *rawPeer) open(change ...func(*wire.Open)) *wire.Open {
	p.t.Helper()
	o := &wire.Open{ContainerID: "test", Hostname: wire.Some("yard.example.test")}
	for _, f := range change {
		f(o)
	}
	p.write(wire.ProtocolAMQP[:])
	p.send(0, o)
	testkit.MustEqual(p.t, receive(p.t, p.headers, "protocol header"), wire.ProtocolAMQP, "got header")
	return expect[wire.Open](p)
}

// begin goes as far as a session on channel 0.
func (p *rawPeer) begin(change ...func(*wire.Begin)) *wire.Begin {
	p.t.Helper()
	p.open()
	b := newBegin()
	for _, f := range change {
		f(b)
	}
	return ask[wire.Begin](p, 0, b)
}

func sender(name string, handle uint32) *wire.Attach {
	return &wire.Attach{
		Name: name, Handle: handle, Role: wire.RoleSender, InitialDeliveryCount: wire.Some(uint32(0)),
		Source: &wire.Source{Address: wire.Some("me")}, Target: &wire.Target{Address: wire.Some("hub")},
	}
}

func receiver(name string, handle uint32) *wire.Attach {
	return &wire.Attach{
		Name: name, Handle: handle, Role: wire.RoleReceiver,
		Source: &wire.Source{Address: wire.Some("hub")}, Target: &wire.Target{Address: wire.Some("me")},
	}
}

// attachSender goes as far as a link by which the client sends, with its first credit.
func (p *rawPeer) attachSender(change ...func(*wire.Attach)) (*wire.Attach, *wire.Flow) {
	p.t.Helper()
	p.begin()
	a := sender("s", 0)
	for _, f := range change {
		f(a)
	}
	return ask[wire.Attach](p, 0, a), expect[wire.Flow](p)
}

// attachReceiver goes as far as a link by which the client receives.
func (p *rawPeer) attachReceiver(change ...func(*wire.Attach)) *wire.Attach {
	p.t.Helper()
	p.begin()
	a := receiver("r", 0)
	for _, f := range change {
		f(a)
	}
	return ask[wire.Attach](p, 0, a)
}

// message is a whole delivery in one frame.
func message(handle, id uint32) *wire.Transfer {
	return &wire.Transfer{Handle: handle, DeliveryID: wire.Some(id), DeliveryTag: []byte("tag"), MessageFormat: wire.Some(uint32(0))}
}

// credit is a flow that gives a link credit, with a wide window.
func credit(handle, count, n uint32) *wire.Flow {
	return &wire.Flow{
		NextIncomingID: wire.Some(uint32(firstOutgoing)), IncomingWindow: 1 << 30, NextOutgoingID: 0, OutgoingWindow: 5000,
		Handle: wire.Some(handle), DeliveryCount: wire.Some(count), LinkCredit: wire.Some(n),
	}
}
