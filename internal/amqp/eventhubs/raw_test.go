package eventhubs

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// raw is a client that sends exactly what it is told to, frame by frame: for what other
// clients do and go-amqp cannot be made to.
type raw struct {
	t    testing.TB
	conn net.Conn
	// frames are read as they come, so that the server never waits for the test.
	frames chan frame
	// sent is the id of the next delivery.
	sent uint32
}

// frame is one performative, and what follows it.
type frame struct {
	channel    uint16
	descriptor wire.Descriptor
	body       []byte
}

func (y *yard) raw() *raw {
	y.t.Helper()
	conn := testkit.Value(y.listener.Dial(y.t.Context()))(y.t)
	c := &raw{t: y.t, conn: conn, frames: make(chan frame, 4096)}
	y.t.Cleanup(func() {
		conn.Close()
		for range c.frames { // until the reader has ended
		}
	})
	return c
}

// rawAs has such a client logged in by a policy's name and key, with a session open; without a name
// it is anonymous.
func (y *yard) rawAs(policy string) *raw {
	y.t.Helper()
	c := y.raw()
	if policy == "" {
		c.sasl("ANONYMOUS")
	} else {
		c.plain(policy)
	}
	c.open()
	return c
}

// header exchanges protocol headers.
func (c *raw) header(h wire.ProtocolHeader) {
	c.t.Helper()
	testkit.Must(c.t, testkit.Err(c.conn.Write(h[:])))
	var answer wire.ProtocolHeader
	testkit.Must(c.t, testkit.Err(io.ReadFull(c.conn, answer[:])))
	testkit.MustEqual(c.t, answer, h, "header")
}

// sasl logs in by a mechanism, which has to be offered.
func (c *raw) sasl(mechanism wire.Symbol) {
	c.t.Helper()
	c.header(wire.ProtocolSASL)
	f := c.readFrame()
	r := wire.NewReader(f.body)
	offered := testkit.Value(r.ReadSASLMechanisms())(c.t)
	found := false
	for _, m := range offered {
		found = found || m == mechanism
	}
	testkit.MustEqual(c.t, found, true, "%s is not among the mechanisms %v", mechanism, offered)
	c.writeFrame(wire.FrameSASL, 0, wire.AppendSASLInit(nil, &wire.SASLInit{Mechanism: mechanism}), nil)
	testkit.MustEqual(c.t, c.readFrame().descriptor, wire.DescriptorSASLOutcome, "the answer")
}

// plain logs in by a policy's name and key.
func (c *raw) plain(policy string) {
	c.t.Helper()
	c.header(wire.ProtocolSASL)
	c.readFrame()
	response := []byte("\x00" + policy + "\x00" + keyOf(policy))
	c.writeFrame(wire.FrameSASL, 0, wire.AppendSASLInit(nil, &wire.SASLInit{Mechanism: "PLAIN", InitialResponse: response, HasResponse: true}), nil)
	r := wire.NewReader(c.readFrame().body)
	if code, err := r.ReadSASLOutcome(); err != nil || code != 0 {
		c.t.Fatalf("the outcome is %d, %v", code, err)
	}
}

// open begins the connection and a session; from then on frames are read as they come.
func (c *raw) open() {
	c.t.Helper()
	c.header(wire.ProtocolAMQP)
	go c.readAll()
	c.write(0, wire.AppendOpen(nil, &wire.Open{ContainerID: "raw", Hostname: wire.Some("localhost"), MaxFrameSize: wire.Some(uint32(65536))}), nil)
	c.expect(wire.DescriptorOpen)
	c.begin(0)
}

func (c *raw) begin(channel uint16) {
	c.t.Helper()
	c.write(channel, wire.AppendBegin(nil, &wire.Begin{IncomingWindow: 5000, OutgoingWindow: 5000, HandleMax: wire.Some(uint32(255))}), nil)
	c.expect(wire.DescriptorBegin)
}

// attach sends an attach and gives the answer, with the error if it was refused.
func (c *raw) attach(channel uint16, a wire.Attach) (wire.Attach, *wire.Error) {
	c.t.Helper()
	c.write(channel, wire.AppendAttach(nil, &a), nil)
	r := wire.NewReader(c.expect(wire.DescriptorAttach).body)
	answer := testkit.Value(r.ReadAttach())(c.t)
	if answer.Source == nil && answer.Target == nil {
		return answer, c.detached()
	}
	return answer, nil
}

// attachPair attaches handle 0 for requests and handle 1 for replies, which go to target.
func (c *raw) attachPair(node, target string) {
	c.t.Helper()
	for _, a := range []wire.Attach{
		{Name: "pair", Handle: 0, Role: wire.RoleSender, Source: &wire.Source{}, Target: &wire.Target{Address: wire.Some(node)}},
		{Name: "pair", Handle: 1, Role: wire.RoleReceiver, Source: &wire.Source{Address: wire.Some(node)}, Target: &wire.Target{Address: wire.Some(target)}},
	} {
		c.accepted(0, a)
	}
}

// accepted attaches a link that must not be refused, and gives the answer.
func (c *raw) accepted(channel uint16, a wire.Attach) wire.Attach {
	c.t.Helper()
	answer, refused := c.attach(channel, a)
	if refused != nil {
		c.t.Fatal(refused)
	}
	return answer
}

// detached awaits a detach and gives its error.
func (c *raw) detached() *wire.Error {
	c.t.Helper()
	r := wire.NewReader(c.expect(wire.DescriptorDetach).body)
	d := testkit.Value(r.ReadDetach())(c.t)
	testkit.Equal(c.t, d.Closed, true, "the detach does not close")
	return d.Error
}

// credit lets the server send on a link.
func (c *raw) credit(channel uint16, handle, deliveryCount, credit uint32) {
	c.t.Helper()
	c.write(channel, wire.AppendFlow(nil, &wire.Flow{
		NextIncomingID: wire.Some(uint32(1)), IncomingWindow: 5000, OutgoingWindow: 5000,
		Handle: wire.Some(handle), DeliveryCount: wire.Some(deliveryCount), LinkCredit: wire.Some(credit),
	}), nil)
}

// send sends a message in one frame.
func (c *raw) send(channel uint16, handle uint32, settled bool, msg []byte) {
	c.t.Helper()
	c.write(channel, wire.AppendTransfer(nil, &wire.Transfer{
		Handle: handle, DeliveryID: wire.Some(c.sent), DeliveryTag: binary.BigEndian.AppendUint32(nil, c.sent),
		MessageFormat: wire.Some(formatMessage), Settled: wire.Some(settled),
	}), msg)
	c.sent++
}

// transfer is the next one of handle 0, unsettled.
func (c *raw) transfer(format uint32) []byte {
	c.sent++
	return wire.AppendTransfer(nil, &wire.Transfer{
		DeliveryID: wire.Some(c.sent - 1), DeliveryTag: binary.BigEndian.AppendUint32(nil, c.sent), MessageFormat: wire.Some(format),
	})
}

// receive awaits a message, which has to be settled and in one frame.
func (c *raw) receive() []byte {
	c.t.Helper()
	r := wire.NewReader(c.expect(wire.DescriptorTransfer).body)
	tr := testkit.Value(r.ReadTransfer())(c.t)
	testkit.Equal(c.t, tr.Settled.Value, true, "the transfer is")
	testkit.Equal(c.t, tr.More, false, "the transfer is")
	return r.Rest()
}

// close ends the connection and awaits the answer.
func (c *raw) close() {
	c.t.Helper()
	c.write(0, wire.AppendClose(nil, &wire.Close{}), nil)
	c.expect(wire.DescriptorClose)
}

// disposition awaits what became of a message.
func (c *raw) disposition() wire.Disposition {
	c.t.Helper()
	r := wire.NewReader(c.expect(wire.DescriptorDisposition).body)
	return testkit.Value(r.ReadDisposition())(c.t)
}

// expect passes frames until one of a kind comes. Flows and dispositions may come at any
// time; anything else must not.
func (c *raw) expect(want wire.Descriptor) frame {
	c.t.Helper()
	for f := range c.frames {
		switch f.descriptor {
		case want:
			return f
		case wire.DescriptorFlow, wire.DescriptorDisposition, 0:
		default:
			c.t.Fatalf("frame %#x came where %#x was expected: %x", f.descriptor, want, f.body)
		}
	}
	c.t.Fatalf("the connection ended where %#x was expected", want)
	return frame{}
}

func (c *raw) write(channel uint16, performative, payload []byte) {
	c.t.Helper()
	c.writeFrame(wire.FrameAMQP, channel, performative, payload)
}

func (c *raw) writeFrame(kind wire.FrameType, channel uint16, performative, payload []byte) {
	c.t.Helper()
	b, mark := wire.BeginFrame(nil, kind, channel)
	b = append(append(b, performative...), payload...)
	testkit.Must(c.t, testkit.Err(c.conn.Write(wire.EndFrame(b, mark))))
}

func (c *raw) readFrame() frame {
	c.t.Helper()
	return testkit.Value(readFrame(c.conn))(c.t)
}

func (c *raw) readAll() {
	defer close(c.frames)
	in := bufio.NewReaderSize(c.conn, 1<<16)
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		c.frames <- f
	}
}

func readFrame(from io.Reader) (frame, error) {
	head := make([]byte, wire.FrameHeaderBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return frame{}, err
	}
	h, err := wire.ReadFrameHeader(head)
	if err != nil {
		return frame{}, err
	}
	body := make([]byte, int(h.Size)-len(head))
	if _, err := io.ReadFull(from, body); err != nil || len(body) == 0 {
		return frame{}, err
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	return frame{channel: h.Channel, descriptor: d, body: r.Rest()}, err
}
