package kafka

import (
	"errors"
	"io"
	"net"
	"time"
)

// input is what a client sends, in the order in which it comes. It belongs to the connection's reading
// goroutine, but for stage.
//
// Reading begins in a small buffer, which is all that an idle connection has. While more is known to
// come a larger one is borrowed, and given back when it is empty. What is larger still is read to where
// it belongs, without a copy.
type input struct {
	nc    net.Conn
	count func(bytes int)
	// pool lends larger buffers; nil for strangers.
	pool  *bufferPool
	small []byte
	large *box // nil while small is in use

	// buf is small or large; what is unread is buf[begin:end].
	buf        []byte
	begin, end int

	// timeout is how long the present part may take, from the first time that it is waited for; armed: it
	// has been.
	timeout time.Duration
	armed   bool
	// strange: the client has not shown who it is; reads are how often something was read of it until now.
	strange bool
	reads   int
	// stage says whether the client is waited for, and is for all to see.
	stage stage
}

func newInput(nc net.Conn, count func(int)) *input {
	in := &input{nc: nc, count: count, small: make([]byte, smallReadBytes), strange: true}
	in.buf = in.small
	in.stage.init(0)
	return in
}

// within gives what is read next so much time.
func (in *input) within(d time.Duration) { in.timeout, in.armed = d, false }

// unread is how much has come and was not read yet.
func (in *input) unread() int { return in.end - in.begin }

// fill waits until at least need bytes are unread, which a small buffer holds. Likely is how many are
// known to come.
func (in *input) fill(need, likely int) error {
	for in.unread() < need {
		in.makeRoom(max(need, likely))
		n, err := in.read(in.buf[in.end:])
		in.end += n
		if err != nil {
			return err
		}
	}
	return nil
}

// makeRoom puts what is unread at the front of a buffer that suits what is to come.
func (in *input) makeRoom(likely int) {
	rest := in.buf[in.begin:in.end]
	switch {
	case in.large == nil && in.pool != nil && likely > len(in.small):
		in.large = in.pool.get()
		in.buf = in.large.bytes
	case len(rest) == 0 && likely <= len(in.small):
		in.giveBack()
	}
	in.begin, in.end = 0, copy(in.buf, rest)
}

// giveBack returns to the small buffer; whatever is unread is lost.
func (in *input) giveBack() {
	if in.large != nil {
		in.pool.put(in.large)
		in.large = nil
	}
	in.buf, in.begin, in.end = in.small, 0, 0
}

// full fills p. Likely is how many bytes are known to come, p included.
func (in *input) full(p []byte, likely int) error {
	for len(p) > 0 {
		if in.unread() == 0 && len(p) >= largeReadBytes {
			n, err := in.read(p)
			if p = p[n:]; err != nil {
				return err
			}
			continue
		}
		if err := in.fill(1, likely); err != nil {
			return err
		}
		n := copy(p, in.buf[in.begin:in.end])
		in.begin += n
		p = p[n:]
		likely -= n
	}
	return nil
}

// read reads once, and gives at least a byte or an error.
func (in *input) read(p []byte) (int, error) {
	in.rest()
	if !in.armed {
		in.armed = true
		in.nc.SetReadDeadline(time.Now().Add(in.timeout)) // one that is closed says so when it is read
	}
	in.stage.block()
	n, err := in.nc.Read(p)
	in.stage.unblock()
	in.count(n)
	switch {
	case n > 0:
		return n, nil // an error comes again
	case err == nil:
		return 0, io.ErrNoProgress
	}
	return 0, err
}

// rest lets a stranger that sends much in small parts wait. A read, or a request, costs the yard more than it costs the
// stranger; meanwhile more comes, which one read takes then.
func (in *input) rest() {
	if !in.strange {
		return
	}
	if in.reads++; in.reads > strangerReads {
		time.Sleep(strangerRest)
	}
}

// cut is one request, as far as it was not read yet. Its methods read on; the first error stays, and
// they give zeros from then on.
type cut struct {
	in   *input
	left int // bytes
	err  error
}

// fail notes an error, if it is the first. The end of the connection within a request is no good end.
func (b *cut) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if b.err == nil {
		b.err = err
	}
	b.left = 0
}

// next gives the next n bytes, which are valid until more is read. A small buffer has to hold them.
func (b *cut) next(n int) []byte {
	if b.err == nil && n > b.left {
		b.fail(errMalformed)
	}
	if b.err == nil {
		if err := b.in.fill(n, b.left); err != nil {
			b.fail(err)
		}
	}
	if b.err != nil {
		return make([]byte, n)
	}
	p := b.in.buf[b.in.begin : b.in.begin+n]
	b.in.begin += n
	b.left -= n
	return p
}

// full fills p.
func (b *cut) full(p []byte) {
	switch {
	case b.err != nil:
	case len(p) > b.left:
		b.fail(errMalformed)
	default:
		if err := b.in.full(p, b.left); err != nil {
			b.fail(err)
			return
		}
		b.left -= len(p)
	}
}

// skip passes over n bytes. A client that goes on sending them is not too slow.
func (b *cut) skip(n int, within time.Duration) {
	for n > 0 && b.err == nil {
		part := min(n, smallReadBytes)
		b.in.within(within)
		b.next(part)
		n -= part
	}
}
