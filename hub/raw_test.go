package hub

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// stream is a connection that gives some bytes, a few at a time.
type stream struct {
	net.Conn
	rest []byte
	step int
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.step)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// readRaw reads all of a stream through a rawConn, by reads of one size.
func readRaw(t testing.TB, in []byte, step, read int) []byte {
	t.Helper()
	c := newRawConn(&stream{rest: in, step: step})
	var out []byte
	p := make([]byte, read)
	for {
		n, err := c.Read(p)
		out = append(out, p[:n]...)
		if err != nil {
			return out
		}
		if n == 0 {
			t.Fatal("a read gave nothing")
		}
	}
}

func frame(kind wire.FrameType, body []byte) []byte {
	dst, mark := wire.BeginFrame(nil, kind, 7)
	return wire.EndFrame(append(dst, body...), mark)
}

func transfer(tag, payload []byte) []byte {
	return append(wire.AppendTransfer(nil, &wire.Transfer{Handle: 3, DeliveryTag: tag}), payload...)
}

func wrapped(payload []byte) []byte {
	return wire.AppendBinary(wire.AppendDescriptor(nil, wire.DescriptorData), payload)
}

func TestPayloadsAreWrappedAndNothingElseIs(t *testing.T) {
	short, long, tag := []byte("payload"), bytes.Repeat([]byte("p"), 70000), bytes.Repeat([]byte("t"), 200)
	flow := wire.AppendFlow(nil, &wire.Flow{})
	for name, test := range map[string]struct{ in, want []byte }{
		"a protocol header":          {wire.ProtocolAMQP[:], wire.ProtocolAMQP[:]},
		"an empty frame":             {wire.AppendEmptyFrame(nil), wire.AppendEmptyFrame(nil)},
		"a flow":                     {frame(wire.FrameAMQP, flow), frame(wire.FrameAMQP, flow)},
		"a frame of the SASL layer":  {frame(wire.FrameSASL, transfer(nil, short)), frame(wire.FrameSASL, transfer(nil, short))},
		"a transfer without payload": {frame(wire.FrameAMQP, transfer(nil, nil)), frame(wire.FrameAMQP, transfer(nil, nil))},
		"a short payload":            {frame(wire.FrameAMQP, transfer(nil, short)), frame(wire.FrameAMQP, transfer(nil, wrapped(short)))},
		"a long payload":             {frame(wire.FrameAMQP, transfer(nil, long)), frame(wire.FrameAMQP, transfer(nil, wrapped(long)))},
		"255 bytes":                  {frame(wire.FrameAMQP, transfer(nil, long[:255])), frame(wire.FrameAMQP, transfer(nil, wrapped(long[:255])))},
		"256 bytes":                  {frame(wire.FrameAMQP, transfer(nil, long[:256])), frame(wire.FrameAMQP, transfer(nil, wrapped(long[:256])))},
		"a large transfer":           {frame(wire.FrameAMQP, transfer(tag, short)), frame(wire.FrameAMQP, transfer(tag, wrapped(short)))},
		"a transfer cut off":         {frame(wire.FrameAMQP, transfer(nil, nil)[:9]), frame(wire.FrameAMQP, transfer(nil, nil)[:9])},
		"a size that is none":        {make([]byte, 16), make([]byte, 16)},
	} {
		t.Run(name, func(t *testing.T) {
			around := frame(wire.FrameAMQP, transfer(nil, []byte("x")))
			aroundWant := frame(wire.FrameAMQP, transfer(nil, wrapped([]byte("x"))))
			in := bytes.Join([][]byte{around, test.in, around}, nil)
			want := bytes.Join([][]byte{aroundWant, test.want, aroundWant}, nil)
			for _, step := range []int{1, 3, 1 << 20} {
				for _, read := range []int{1, 13, 1 << 20} {
					testkit.MustSlices(t, readRaw(t, in, step, read), want, "by %d and %d", step, read)
				}
			}
		})
	}
}

// unwrap undoes what rawConn does, frame by frame.
func unwrap(out []byte) (in []byte) {
	for len(out) >= wire.FrameHeaderBytes {
		size := min(frameSize(out), len(out))
		f := out[:size]
		out = out[size:]
		end, ok := transferEnd(f[wire.FrameHeaderBytes:])
		if end += wire.FrameHeaderBytes; wire.FrameType(f[5]) != wire.FrameAMQP || !ok || end >= len(f) || bytes.HasPrefix(f, []byte("AMQP")) {
			in = append(in, f...)
			continue
		}
		r := wire.NewReader(f[end:])
		payload, err := r.ReadData()
		if err != nil || r.Len() > 0 {
			return nil
		}
		start := len(in)
		in = append(append(in, f[:end]...), payload...)
		binary.BigEndian.PutUint32(in[start:], uint32(len(in)-start))
	}
	return append(in, out...)
}

// Whatever a peer sends, nothing breaks, it makes no difference how it is cut, and of whole frames
// nothing is lost.
func FuzzRawConn(f *testing.F) {
	f.Add(frame(wire.FrameAMQP, transfer(nil, []byte("payload"))), uint64(1))
	f.Add(append(wire.ProtocolAMQP[:], frame(wire.FrameAMQP, wire.AppendFlow(nil, &wire.Flow{}))...), uint64(2))
	f.Add(frame(wire.FrameAMQP, []byte{0, 0x53, 0x14, 0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x43, 1, 2, 3}), uint64(3))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		whole := readRaw(t, in, 1<<20, 1<<20)
		if cut := readRaw(t, in, 1+random.IntN(30), 1+random.IntN(30)); !bytes.Equal(whole, cut) {
			t.Fatalf("%x by large pieces, %x by small ones", whole, cut)
		}
		if frames := wholeFrames(in); frames > 0 {
			if back := unwrap(readRaw(t, in[:frames], 1<<20, 1<<20)); !bytes.Equal(back, in[:frames]) {
				t.Fatalf("%x became %x", in[:frames], back)
			}
		}
	})
}

// wholeFrames is how much of a stream is frames with nothing missing.
func wholeFrames(in []byte) (n int) {
	for len(in)-n >= wire.FrameHeaderBytes {
		size := frameSize(in[n:])
		if int(binary.BigEndian.Uint32(in[n:])) != size && !bytes.HasPrefix(in[n:], []byte("AMQP")) || size > len(in)-n {
			break
		}
		n += size
	}
	return n
}
