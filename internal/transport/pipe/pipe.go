// Package pipe is a network connection inside the process: two ends with a buffer for each
// direction between them, deadlines, and a listener. It is how a yard in the same process is
// reached without a socket.
//
// Unlike net.Pipe a write does not wait for its reader while there is room, so that the two
// sides work at once. Whoever waits does so on a sync.Cond, which a bubble of
// testing/synctest sees through.
package pipe

import (
	"errors"
	"io"
	"net"
	"time"
)

// network is what the ends call theirs.
const network = "pipe"

type addr string

func (addr) Network() string  { return network }
func (a addr) String() string { return string(a) }

// New makes a connection and gives its two ends.
func New() (net.Conn, net.Conn) { return pair("pipe") }

func pair(name string) (near, far *Conn) {
	there, back := newStream(), newStream()
	return &Conn{in: back, out: there, addr: addr(name)}, &Conn{in: there, out: back, addr: addr(name)}
}

// Conn is one end of a connection. All its methods may be called by many goroutines at once.
type Conn struct {
	in, out *stream
	addr    addr
}

var _ net.Conn = (*Conn)(nil)

// Read waits for bytes. When the other end writes no more it gives what is left and then io.EOF.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.wrap("read", err)
}

// Write waits until all of b is in the buffer.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.wrap("write", err)
}

// Close ends both directions. What was written before can still be read at the other end.
func (c *Conn) Close() error {
	c.in.closeReading()
	c.out.closeWriting()
	return nil
}

// CloseWrite ends the direction to the other end, which reads io.EOF after all that was written.
func (c *Conn) CloseWrite() error {
	c.out.closeWriting()
	return nil
}

// LocalAddr and RemoteAddr are the listener's name: there is no other.
func (c *Conn) LocalAddr() net.Addr  { return c.addr }
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline ends reads, also those that wait, at a time; the zero time: never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.wrap("set", c.in.setDeadline(&c.in.readers, &c.in.deaf, t))
}

// SetWriteDeadline is the same for writes. One that it ends may have written some.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.wrap("set", c.out.setDeadline(&c.out.writer, &c.out.written, t))
}

func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.addr, Addr: c.addr, Err: err}
}
