package wire

import (
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestFrameHeaders(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		want FrameHeader
	}{
		{"a heartbeat", "00 00 00 08 02 00 00 00", FrameHeader{Size: 8, DataOffset: 8, Type: FrameAMQP}},
		{"a frame on a channel", "00 01 00 00 02 00 01 02", FrameHeader{Size: 65536, DataOffset: 8, Channel: 0x0102}},
		{"a frame of SASL", "00 00 00 10 02 01 00 00 ff ff", FrameHeader{Size: 16, DataOffset: 8, Type: FrameSASL}},
		{"an extended header", "00 00 00 0c 03 00 00 01", FrameHeader{Size: 12, DataOffset: 12, Channel: 1}},
		{"the longest header", "ff ff ff ff ff 00 00 00", FrameHeader{Size: 1<<32 - 1, DataOffset: 1020}},
		{"an unknown type", "00 00 00 08 02 02 00 00", FrameHeader{Size: 8, DataOffset: 8, Type: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Equal(t, testkit.Value(ReadFrameHeader(unhex(t, c.hex)))(t), c.want, "%s", c.name)
		})
	}
}

func TestFrameHeadersThatAreNoneAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		err  error
	}{
		{"nothing", "", ErrTruncated},
		{"seven bytes", "00 00 00 08 02 00 00", ErrTruncated},
		{"a body that begins inside the header", "00 00 00 08 01 00 00 00", ErrMalformed},
		{"a body that begins nowhere", "00 00 00 08 00 00 00 00", ErrMalformed},
		{"a frame shorter than its header", "00 00 00 07 02 00 00 00", ErrMalformed},
		{"a frame shorter than its extended header", "00 00 00 0b 03 00 00 00", ErrMalformed},
		{"an empty frame", "00 00 00 00 02 00 00 00", ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			var where *DecodeError
			if got, err := ReadFrameHeader(unhex(t, c.hex)); !errors.Is(err, c.err) || !errors.As(err, &where) {
				t.Errorf("%s: %+v, %v; want %v", c.name, got, err, c.err)
			}
		})
	}
}

func TestFramesAreWritten(t *testing.T) {
	dst, frame := BeginFrame([]byte("before"), FrameAMQP, 0x0102)
	dst = EndFrame(AppendClose(dst, &Close{}), frame)
	dst, frame = BeginFrame(dst, FrameSASL, 0)
	dst = EndFrame(AppendSASLOutcome(dst, SASLOK), frame)
	dst = AppendEmptyFrame(dst)
	want := join([]byte("before"),
		unhex(t, "00 00 00 0f 02 00 01 02 00 53 18 c0 02 01 40"),
		unhex(t, "00 00 00 11 02 01 00 00 00 53 44 c0 04 02 50 00 40"),
		unhex(t, "00 00 00 08 02 00 00 00"))
	testkit.Slices(t, dst, want, "written")
}
