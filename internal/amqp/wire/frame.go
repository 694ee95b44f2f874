package wire

// FrameType tells the frames of a connection from those of its SASL layer (§2.3.1).
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
