package amqp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// readConn is a connection of which only Read matters.
type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func inputOf(r io.Reader, maxFrame int, pool *bufferPool) *input {
	return newInput(readConn{Reader: r}, maxFrame, pool, prometheus.NewCounter(prometheus.CounterOpts{}))
}

// pieces gives its bytes in pieces of the sizes that were drawn.
type pieces struct {
	b     []byte
	sizes func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(len(p.b), p.sizes())])
	p.b = p.b[n:]
	return n, nil
}

// R2: what a stranger sends in small parts is read a few hundred times a second at most; what anybody else sends as it comes.
func TestStrangersAreReadAtLeisure(t *testing.T) {
	const frames = 1000
	beat := []byte{0, 0, 0, 8, 2, 0, 0, 0}
	for _, strange := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			in := inputOf(&pieces{b: bytes.Repeat(beat, frames), sizes: func() int { return len(beat) }}, 100, newBufferPool(100))
			in.strange = strange
			began := time.Now()
			for range frames {
				testkit.Must(t, testkit.Err3(in.frame()))
			}
			took, want := time.Since(began), time.Duration(0)
			if strange {
				want = (frames - strangerReads) * strangerRest
			}
			testkit.Equal(t, took, want)
		})
	}
}

// However the bytes come, the frames are the same.
func TestFramesHoweverTheyCome(t *testing.T) {
	const maxFrame = 8 << 10
	pool := newBufferPool(maxFrame + readAheadBytes)
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, maxFrame-8), 0, 20).Draw(t, "bodies")
		var stream []byte
		for i, body := range bodies {
			stream = appendFrame(stream, uint16(i), body, nil)
		}
		size := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1000, 5000), rapid.IntRange(10_000, 200_000))
		in := inputOf(&pieces{stream, func() int { return size.Draw(t, "piece") }}, maxFrame, pool)
		for i, want := range bodies {
			h, body, err := in.frame()
			if err != nil || int(h.Channel) != i || !bytes.Equal(body, want) {
				t.Fatalf("frame %d: %+v, %d bytes, %v", i, h, len(body), err)
			}
		}
		testkit.MustErrorIs(t, testkit.Err3(in.frame()), io.EOF, "got … at the end")
		if in.large != nil {
			t.Fatal("the large buffer was not given back")
		}
	})
}

func TestStreamEndsInsideAFrame(t *testing.T) {
	whole := appendFrame(nil, 0, make([]byte, 10_000), nil)
	for _, n := range []int{1, 7, 8, 9, 5000, len(whole) - 1} {
		in := inputOf(iotest.OneByteReader(bytes.NewReader(whole[:n])), 64<<10, newBufferPool(128<<10))
		testkit.ErrorIs(t, testkit.Err3(in.frame()), io.ErrUnexpectedEOF, "after %d bytes", n)
	}
}

// A frame as large as it may be is taken, a byte more is not.
func TestLargestFrame(t *testing.T) {
	for size, ok := range map[int]bool{512: true, 513: false} {
		in := inputOf(bytes.NewReader(appendFrame(nil, 0, make([]byte, size-wire.FrameHeaderBytes), nil)), 512, newBufferPool(8<<10))
		_, _, err := in.frame()
		if ok && err != nil || !ok && !errors.Is(err, errFrameTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// What is read with the small buffer costs no large one.
func TestLittleTrafficNeedsNoLargeBuffer(t *testing.T) {
	b := appendFrame(nil, 0, make([]byte, 1000), nil)
	in := inputOf(iotest.HalfReader(bytes.NewReader(bytes.Repeat(b, 100))), 64<<10, newBufferPool(128<<10))
	for range 100 {
		testkit.Must(t, testkit.Err3(in.frame()))
		if in.large != nil {
			t.Fatal("a large buffer was taken")
		}
	}
}
