package wire

import "encoding/binary"

// FrameType distinguishes the frames of a connection from those of its SASL layer (§2.3.1).
type FrameType uint8

const (
	FrameAMQP FrameType = 0
	FrameSASL FrameType = 1
)

// FrameHeaderBytes is the length of a frame's head; MinMaxFrameBytes what every peer has
// to take (§2.3.1, §2.7.1).
const (
	FrameHeaderBytes = 8
	MinMaxFrameBytes = 512
)

// FrameHeader is the head of a frame.
type FrameHeader struct {
	// Size is that of the whole frame, this head included.
	Size uint32
	// DataOffset is where the body begins, in bytes from the frame's beginning.
	DataOffset int
	Type       FrameType
	Channel    uint16
}

// ProtocolHeader is what each layer of a connection begins with (§2.2): "AMQP", the
// layer's id, then 1.0.0.
type ProtocolHeader [8]byte

var (
	ProtocolAMQP = ProtocolHeader{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	ProtocolTLS  = ProtocolHeader{'A', 'M', 'Q', 'P', 2, 1, 0, 0}
	ProtocolSASL = ProtocolHeader{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)

// ReadFrameHeader reads the head of a frame from its first eight bytes. What it lets through has a
// body, maybe an empty one; how large a frame may be, and of which types, is for the caller to say.
func ReadFrameHeader(b []byte) (FrameHeader, error) {
	if len(b) < FrameHeaderBytes {
		return FrameHeader{}, &DecodeError{Offset: len(b), Want: "frame header", Err: ErrTruncated}
	}
	h := FrameHeader{
		Size:       binary.BigEndian.Uint32(b),
		DataOffset: 4 * int(b[4]), // counted in words of four bytes
		Type:       FrameType(b[5]),
		Channel:    binary.BigEndian.Uint16(b[6:]),
	}
	if h.DataOffset < FrameHeaderBytes {
		return FrameHeader{}, &DecodeError{Offset: 4, Want: "body behind the frame header", Err: ErrMalformed}
	}
	if h.Size < uint32(h.DataOffset) {
		return FrameHeader{}, &DecodeError{Offset: 0, Want: "frame with room for its header", Err: ErrMalformed}
	}
	return h, nil
}

// BeginFrame opens a frame: the caller appends its body, then closes it.
func BeginFrame(dst []byte, t FrameType, channel uint16) ([]byte, Mark) {
	return append(dst, 0, 0, 0, 0, FrameHeaderBytes/4, byte(t), byte(channel>>8), byte(channel)), Mark(len(dst))
}

// EndFrame fills in the size of a frame, which is now known.
func EndFrame(dst []byte, m Mark) []byte {
	binary.BigEndian.PutUint32(dst[m:], uint32(len(dst)-int(m)))
	return dst
}

// AppendEmptyFrame writes a frame without a body, by which a peer that has nothing to say
// shows that it is alive (§2.4.5).
func AppendEmptyFrame(dst []byte) []byte {
	return append(dst, 0, 0, 0, FrameHeaderBytes, FrameHeaderBytes/4, byte(FrameAMQP), 0, 0)
}
