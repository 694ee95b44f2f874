package hub

import (
	"bytes"
	"encoding/binary"
	"net"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// rawConn sits between the network and the AMQP library and makes the library leave
// messages alone: it wraps the payload of every transfer that comes in into a data section,
// the one part of a message that the library hands out as the bytes it is.
//
//	frame head | transfer | payload          becomes
//	frame head | transfer | data section head, payload
//
// There are two reasons. The library's own decoding loses what package event promises to
// keep (symbols become strings, maps their order) and ends the link at values that it does
// not know (chars, decimals): a reader could never get past such an event. And it allocates
// for every annotation of every event, where our codec allocates only what the program sees.
//
// A message of several frames becomes several data sections, to be put together again; so frames
// can be treated one by one, and nothing has to be remembered between them. The library does not
// check incoming frames against its largest size, so that the few bytes more do no harm.
//
// Everything that is not a transfer, and everything malformed, passes as it is.
type rawConn struct {
	net.Conn

	// buf[from:to] was read and not given out yet.
	buf      []byte
	from, to int

	// What is to be given out next, in this order: insert, then pass bytes from buf, then
	// the same of the second pair.
	first, second piece
	// room for what is inserted.
	head [wire.FrameHeaderBytes]byte
	data [dataHeadBytes]byte
}

// piece is something to insert, and how many bytes pass after it.
type piece struct {
	insert []byte
	pass   int
}

func (p piece) empty() bool { return len(p.insert) == 0 && p.pass == 0 }

const (
	rawBufferBytes = 64 << 10
	// dataHeadBytes is the most that stands before the bytes of a data section: a descriptor,
	// a constructor, a length.
	dataHeadBytes = 3 + 1 + 4
	// transferHeadBytes is as much of a frame as shows where a transfer ends: the frame's
	// head, a descriptor, and the head of a list.
	transferHeadBytes = wire.FrameHeaderBytes + 3 + 9
	// maxRawFrame keeps sizes that are no sizes from being calculated with.
	maxRawFrame = 1 << 30
)

func newRawConn(conn net.Conn) *rawConn {
	return &rawConn{Conn: conn, buf: make([]byte, rawBufferBytes)}
}

// Read is called by one goroutine at a time.
func (c *rawConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if n := c.give(p); n > 0 {
			return n, nil
		}
		// What is left over is less than the head of a frame, so there is always room.
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
		n, err := c.Conn.Read(c.buf[c.to:])
		c.to += n
		if n == 0 && err != nil { // with n > 0 the error comes again
			return 0, err
		}
	}
}

// give gives out what can be given of what was read.
func (c *rawConn) give(p []byte) (given int) {
	for given < len(p) {
		if c.first.empty() {
			c.first, c.second = c.second, piece{}
		}
		switch {
		case c.first.empty() && !c.plan():
			return given
		case len(c.first.insert) > 0:
			n := copy(p[given:], c.first.insert)
			c.first.insert = c.first.insert[n:]
			given += n
		case c.from < c.to:
			n := copy(p[given:], c.buf[c.from:min(c.to, c.from+c.first.pass)])
			c.from += n
			c.first.pass -= n
			given += n
		default:
			return given
		}
	}
	return given
}

// plan looks at the next frame and decides what becomes of it; false if there is not enough of it
// yet.
func (c *rawConn) plan() bool {
	b := c.buf[c.from:c.to]
	if len(b) < wire.FrameHeaderBytes {
		return false
	}
	size := frameSize(b)
	if wire.FrameType(b[5]) != wire.FrameAMQP || size > maxRawFrame {
		c.first.pass = size
		return true
	}
	if len(b) < min(size, transferHeadBytes) {
		return false
	}
	end, ok := transferEnd(b[wire.FrameHeaderBytes:min(size, len(b))])
	payload := size - wire.FrameHeaderBytes - end
	if !ok || payload <= 0 {
		c.first.pass = size
		return true
	}
	data := wire.AppendDescriptor(c.data[:0], wire.DescriptorData)
	if payload <= 0xff {
		data = append(data, byte(wire.CodeBinary8), byte(payload))
	} else {
		data = binary.BigEndian.AppendUint32(append(data, byte(wire.CodeBinary32)), uint32(payload))
	}
	copy(c.head[:], b)
	binary.BigEndian.PutUint32(c.head[:], uint32(size+len(data)))
	c.from += len(c.head)
	c.first = piece{insert: c.head[:], pass: end}
	c.second = piece{insert: data, pass: payload}
	return true
}

// frameSize is what the frame says, or that of a protocol header, or as little as there must be.
func frameSize(b []byte) int {
	if bytes.HasPrefix(b, []byte("AMQP")) {
		return wire.FrameHeaderBytes
	}
	return max(int(binary.BigEndian.Uint32(b)), wire.FrameHeaderBytes)
}

// transferEnd reports whether a frame's body begins with a transfer, in the only form that the
// library reads, and where that ends.
func transferEnd(body []byte) (end int, ok bool) {
	if len(body) < 4 || body[0] != byte(wire.CodeDescribed) || body[1] != byte(wire.CodeSmallUlong) ||
		wire.Descriptor(body[2]) != wire.DescriptorTransfer {
		return 0, false
	}
	switch wire.Code(body[3]) {
	case wire.CodeList8:
		if len(body) > 4 {
			return 5 + int(body[4]), true
		}
	case wire.CodeList32:
		if len(body) >= 8 {
			size := binary.BigEndian.Uint32(body[4:])
			return 8 + int(size), size < maxRawFrame
		}
	}
	return 0, false
}

// rawBytes is the encoded message that rawConn has wrapped. It belongs to the caller.
func rawBytes(m *amqp.Message) []byte {
	if len(m.Data) == 1 {
		return m.Data[0]
	}
	return bytes.Join(m.Data, nil)
}
