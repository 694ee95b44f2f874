package amqp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// input cuts what the peer sends into frames. It belongs to the connection's reading
// goroutine, but for silent.
//
// What is read stays where it is until the next frame is asked for, so that a message in one frame
// reaches its sink without a copy. Reading begins in a small buffer. When that is full there may be
// much more, and a large one is borrowed, unless all frames fit the small one; it is given back
// once nothing unread is left. So an idle connection holds the small one only, and a busy one pays
// one short read for each time that it catches up.
type input struct {
	traffic *traffic // counts, too; nil: nobody wants to know
	nc      net.Conn
	max     int // the largest frame; grows when the peer has opened, and when it has shown a right
	count   prometheus.Counter
	pool    *bufferPool
	small   []byte
	large   *box        // nil while small is in use
	from    *bufferPool // where large is from

	// buf is small or large; what is unread is buf[begin:end].
	buf        []byte
	begin, end int

	// since is when the wait for the present frame began, in nanoseconds after start, plus one;
	// zero while what has come is being worked on. waiting is the same without a fence.
	start   time.Time
	since   atomic.Int64
	waiting bool

	// strange: it is a stranger's, of which reads are how often something was read.
	strange bool
	reads   int
}

func newInput(nc net.Conn, maxFrame int, pool *bufferPool, count prometheus.Counter) *input {
	in := &input{nc: nc, max: maxFrame, pool: pool, count: count, small: make([]byte, smallReadBytes), start: time.Now()}
	in.buf = in.small
	return in
}

// frame gives the next frame's head and body. The body is valid until the next call.
func (in *input) frame() (wire.FrameHeader, []byte, error) {
	if err := in.need(wire.FrameHeaderBytes); err != nil {
		return wire.FrameHeader{}, nil, err
	}
	h, err := wire.ReadFrameHeader(in.buf[in.begin:in.end])
	if err != nil {
		// The codec's error is not wrapped: this is no value that cannot be decoded.
		return h, nil, fmt.Errorf("%w: %v", errFrameHeader, err)
	}
	if h.Size > uint32(in.max) {
		return h, nil, fmt.Errorf("%w: %d bytes, %d are allowed", errFrameTooLarge, h.Size, in.max)
	}
	if err := in.need(int(h.Size)); err != nil {
		return h, nil, err
	}
	body := in.buf[in.begin+h.DataOffset : in.begin+int(h.Size)]
	in.begin += int(h.Size)
	in.arrived()
	return h, body, nil
}

// header gives what a layer of the protocol begins with.
func (in *input) header() (wire.ProtocolHeader, error) {
	var h wire.ProtocolHeader
	if err := in.need(len(h)); err != nil {
		return h, err
	}
	copy(h[:], in.buf[in.begin:])
	in.begin += len(h)
	in.arrived()
	return h, nil
}

// need waits until so many bytes are unread.
func (in *input) need(n int) error {
	for in.end-in.begin < n {
		if err := in.read(n); err != nil {
			return err
		}
	}
	return nil
}

func (in *input) read(need int) error {
	in.makeRoom(need)
	if !in.waiting {
		in.waiting = true
		in.since.Store(1 + int64(time.Since(in.start)))
	}
	in.rest()
	n, err := in.nc.Read(in.buf[in.end:])
	in.end += n
	in.count.Add(float64(n))
	if in.traffic != nil {
		in.traffic.received.Add(int64(n))
	}
	if n > 0 {
		return nil // an error comes again
	}
	if errors.Is(err, io.EOF) && in.end > in.begin {
		return io.ErrUnexpectedEOF
	}
	return err
}

// makeRoom puts what is unread at the front of a buffer that has room for need bytes,
// and for more than is there.
func (in *input) makeRoom(need int) {
	unread := in.buf[in.begin:in.end]
	switch {
	case len(unread) == 0:
		in.giveBack()
	case in.max > len(in.buf) && (need > len(in.buf) || in.end == len(in.buf)):
		outgrown, from := in.large, in.from // a stranger's, or none
		in.large, in.from = in.pool.get(), in.pool
		in.buf = in.large.bytes
		defer func() {
			if outgrown != nil {
				from.put(outgrown)
			}
		}()
	}
	in.begin, in.end = 0, copy(in.buf, unread)
}

// giveBack returns to the small buffer; whatever is unread is lost.
func (in *input) giveBack() {
	if in.large != nil {
		in.from.put(in.large)
		in.large = nil
	}
	in.buf, in.begin, in.end = in.small, 0, 0
}

// discard reads until nothing more comes, for a stream that makes no sense any more.
func (in *input) discard() {
	for {
		in.giveBack()
		in.rest()
		if _, err := in.nc.Read(in.buf); err != nil {
			return
		}
	}
}

// rest lets a stranger that sends much in small parts wait. A read costs the yard more than the part that it brings
// costs the stranger; meanwhile more comes, which one read takes then.
func (in *input) rest() {
	if !in.strange {
		return
	}
	if in.reads++; in.reads > strangerReads {
		time.Sleep(strangerRest)
	}
}

func (in *input) arrived() {
	if in.waiting {
		in.waiting = false
		in.since.Store(0)
	}
}

// silent reports, to any goroutine, for how long the present frame has been waited for;
// zero while the peer has given us work. That bytes trickle in does not count.
func (in *input) silent(now time.Time) time.Duration {
	since := in.since.Load()
	if since == 0 {
		return 0
	}
	return now.Sub(in.start) - time.Duration(since-1)
}
