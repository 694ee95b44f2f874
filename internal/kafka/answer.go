package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Writer takes the answer to one request: Respond, or Nothing, or Open and then as many bytes as it
// says. It belongs to the connection's writing goroutine, and is the Finish's that it was given to until
// that returns.
type Writer struct {
	conn *Conn
	// stage says whether the client is waited for, and is for all to see.
	stage stage
	// all and piece are for send alone.
	all, piece net.Buffers
	// lost: the connection did not take what was written.
	lost bool

	// Of the present answer:
	to    header
	mute  bool   // it goes nowhere
	box   *box   // where buf was borrowed
	buf   []byte // waits to be written
	state answerState
	due   int // bytes of the body that are still to come, once it is open
	// hold is the memory of the request and its answer: base bytes when it was begun, and held by Take.
	hold       *hold
	base, held int
}

// answerState is how far an answer is.
type answerState uint8

const (
	unanswered answerState = iota
	open
	answered
)

// Respond answers with all of r, whose version it sets.
func (w *Writer) Respond(r kmsg.Response) error {
	if w.state != unanswered {
		return errAnsweredTwice
	}
	version := w.to.version
	if w.to.key == keyApiVersions && (version < 0 || version > highestApiVersions) {
		version = 0
	}
	r.SetVersion(version)
	if code := errorCode(r); code.IsValid() {
		w.Failed(int16(code.Int()))
	}
	w.begin()
	w.buf = r.AppendTo(w.buf)
	binary.BigEndian.PutUint32(w.buf, uint32(len(w.buf)-4))
	w.state = answered
	return w.flush()
}

// Nothing says that there is no answer, which is so for Produce with acks=0.
func (w *Writer) Nothing() {
	if w.state == unanswered {
		w.state = answered
	}
}

// Open begins an answer whose body has so many bytes; they follow by Write and WriteBuffers.
func (w *Writer) Open(bodyBytes int) error {
	if w.state != unanswered {
		return errAnsweredTwice
	}
	w.begin()
	binary.BigEndian.PutUint32(w.buf, uint32(len(w.buf)-4+bodyBytes))
	w.state, w.due = open, bodyBytes
	return w.close()
}

// begin begins with the response's head: room for its size, the correlation id and, in flexible
// versions, no tagged fields. That of ApiVersions is always the old one, since it tells the versions.
func (w *Writer) begin() {
	w.buf = append(w.buf[:0], 0, 0, 0, 0)
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(w.to.correlation))
	if w.to.flexible && w.to.key != keyApiVersions {
		w.buf = append(w.buf, 0)
	}
}

// Write appends to an answer that is open. What is small waits for more; what is large is written before
// it returns.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.spend(len(p)); err != nil {
		return 0, err
	}
	if len(w.buf)+len(p) <= writeBufferBytes {
		w.buf = append(w.buf, p...)
		return len(p), w.close()
	}
	if err := w.send(net.Buffers{p}); err != nil {
		return 0, err
	}
	return len(p), w.close()
}

// WriteBuffers is Write for many at once, which are written at once as well. It leaves b as it is.
func (w *Writer) WriteBuffers(b net.Buffers) error {
	size := 0
	for _, p := range b {
		size += len(p)
	}
	if err := w.spend(size); err != nil {
		return err
	}
	if err := w.send(b); err != nil {
		return err
	}
	return w.close()
}

// spend counts bytes of the body.
func (w *Writer) spend(n int) error {
	switch {
	case w.state != open:
		return errNotOpen
	case n > w.due:
		return fmt.Errorf("%w: %d bytes more than were announced", errAnswerSize, n-w.due)
	}
	w.due -= n
	return nil
}

// close ends an answer that is whole.
func (w *Writer) close() error {
	if w.due > 0 {
		return nil
	}
	w.state = answered
	return w.flush()
}

// Take takes memory for what is read from storage to be written, in place of what was taken before; it
// waits until there is some. It is given back when Finish returns.
func (w *Writer) Take(ctx context.Context, bytes int) error {
	w.held = bytes
	w.hold.open()
	return w.hold.take(ctx, w.base+w.held)
}

// Hurried has a value when others need the memory that the request has, or one behind it: who waits for
// nothing but better times, such as a fetch for events to come, then answers with what there is.
func (w *Writer) Hurried() <-chan struct{} { return w.stage.hurried }

// Failed notes that a part of the answer, such as a partition, has that error code. Respond notes the
// code of the whole by itself.
func (w *Writer) Failed(code int16) { w.conn.server.metrics.failed(w.to.key, code) }

// flush writes what waits.
func (w *Writer) flush() error { return w.send(nil) }

// send writes what waits, and more behind it, piece by piece.
func (w *Writer) send(more net.Buffers) error {
	all := append(append(w.all[:0], w.buf), more...)
	w.all = all[:0]
	defer clear(all)
	if size := len(w.buf); size > writeBufferBytes {
		w.hold.set(w.base + w.held + size)
		defer w.hold.set(w.base + w.held)
	}
	for len(all) > 0 && !w.mute {
		w.piece, all = split(w.piece[:0], all, writeBytes)
		if len(w.piece) == 0 {
			break // all were empty
		}
		if err := w.write(w.piece); err != nil {
			w.lost = true
			return err
		}
	}
	w.buf = w.buf[:0]
	return nil
}

// split appends to piece the first bytes of several buffers, at most so many, and gives the rest, which
// may have a cut in its first buffer. Empty ones are left out: some connections wait with them.
func split(piece, all net.Buffers, limit int) (net.Buffers, net.Buffers) {
	for i, p := range all {
		n := min(len(p), limit)
		if n > 0 {
			piece = append(piece, p[:n])
		}
		all[i] = p[n:]
		if limit -= n; limit == 0 {
			return piece, all[i:]
		}
	}
	return piece, nil
}

// write writes a piece, for which the client has WriteTimeout, and again whenever it has taken some of
// it, which TLS does not report.
func (w *Writer) write(piece net.Buffers) error {
	c := w.conn
	for {
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.server.cfg.WriteTimeout)); err != nil {
			return fmt.Errorf("set write deadline: %w", err)
		}
		w.hold.touch() // from now on it is the client that is waited for
		w.stage.block()
		n, err := piece.WriteTo(c.nc) // takes from piece what was written
		w.stage.unblock()
		c.sent(int(n))
		if err == nil {
			return nil
		}
		switch late := errors.Is(err, os.ErrDeadlineExceeded); {
		case !late:
			return fmt.Errorf("write: %w", err)
		case n == 0 || c.secure:
			return errUntaken
		}
	}
}

// bare answers a bare token with another.
func (w *Writer) bare(token []byte) error {
	w.buf = append(binary.BigEndian.AppendUint32(w.buf, uint32(len(token))), token...)
	w.state = answered
	return w.flush()
}
