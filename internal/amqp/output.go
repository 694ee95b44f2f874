package amqp

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// output is what waits to be written. Everybody appends whole frames to buf, with the
// connection's mutex held, so what is appended later is written later; the writing
// goroutine takes the buffer away, whole, and writes it while the next one fills.
//
// Messages stop at the high-water mark: a link that finds the buffer full, or others in
// the queue, joins the queue (link_out.go). When the writing goroutine takes the buffer
// the first in the queue gets the turn; it fills in what it can and passes the turn on
// while there is room. So links share a connection in turns of up to the mark, one with
// nothing to send or without credit is never waited for, and a peer that takes nothing
// stops the links of this connection and nobody else's.
//
// Answers do not wait, for the reading goroutine makes them, and a peer that waits for us
// to read must not make us wait for it to read. They are bounded by maxAnswerBytes.
//
// All fields are guarded by Conn.mu.
type output struct {
	pool *bufferPool
	box  *box   // where buf came from; nil when there is none
	buf  []byte // whole frames
	// answers is how much of buf is no message; overflow: that was too much.
	answers  int
	overflow bool
	// reserved is what buf has of the answers' shared budget, taken what the buffer has that
	// is being written.
	reserved, taken int
	// closed: the connection's close is in buf, or was: nothing follows it. failed:
	// nothing can be written any more. Either way what is appended is dropped.
	closed, failed bool
	// finish: the writing goroutine ends when all is written.
	finish bool
	// acks are the sessions that have accepted deliveries to tell of.
	acks  []*session
	queue linkQueue

	asleep bool          // the writing goroutine waits for wake
	wake   chan struct{} // holds one
}

// deaf: whatever is appended would be dropped.
func (o *output) deaf() bool { return o.closed || o.failed }

// open gives the buffer to append to.
func (o *output) open() []byte {
	if o.box == nil {
		o.box = o.pool.get()
		o.buf = o.box.bytes[:0]
	}
	return o.buf
}

// signal lets the writing goroutine know that there is something.
func (o *output) signal() {
	if o.asleep {
		o.asleep = false
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// take gives away what there is, nil if nothing.
func (o *output) take() *box {
	if len(o.buf) == 0 {
		return nil
	}
	b := o.box
	b.bytes = o.buf
	o.box, o.buf, o.answers = nil, nil, 0
	o.taken, o.reserved = o.taken+o.reserved, 0
	return b
}

// rawLocked appends bytes that are no frame: a protocol header.
func (c *Conn) rawLocked(b []byte) {
	if c.out.deaf() {
		return
	}
	c.out.buf = append(c.out.open(), b...)
	c.out.signal()
}

// frameLocked appends a frame: what body appends to the frame's head.
func (c *Conn) frameLocked(t wire.FrameType, channel uint16, body func(dst []byte) []byte) {
	if c.out.deaf() {
		return
	}
	dst, mark := wire.BeginFrame(c.out.open(), t, channel)
	c.wroteLocked(wire.EndFrame(body(dst), mark), mark)
}

// wroteLocked has an answer appended, whose frame begins at mark.
func (c *Conn) wroteLocked(buf []byte, mark wire.Mark) {
	c.out.buf = buf
	c.out.answers += len(buf) - int(mark)
	c.out.signal()
	if !c.out.overflow && (c.out.answers > maxAnswerBytes || !c.reserveLocked()) {
		c.out.overflow = true
		c.refuse(errOutputFull)
		c.closeLocked(asError(errOutputFull))
	}
}

// reserveLocked takes from the shared budget what the answers need, and is false where
// there is too little.
func (c *Conn) reserveLocked() bool {
	for c.out.answers > freeAnswerBytes+c.out.reserved {
		if !c.server.answers.take(answerStepBytes) {
			return false
		}
		c.out.reserved += answerStepBytes
	}
	return true
}

// writeGuarded is the writing goroutine. Its panic costs this connection only.
func (c *Conn) writeGuarded() {
	if err := c.guarded("writing", c.write); err != nil {
		c.refuse(err)
		c.cut(err)
	}
}

// write writes what there is, for as long as the connection lives. It ends when it is told to finish, or cannot write.
func (c *Conn) write() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for wrote := false; ; {
		b, finish := c.takeAll(wrote)
		wrote = b != nil
		if wrote {
			if err := c.writeBytes(b.bytes); err != nil {
				c.writeFailed(err)
				return
			}
			c.server.writing.put(b)
			continue
		}
		if finish {
			return
		}
		wait := c.attend(time.Now())
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.out.wake:
		case <-timer.C:
		}
	}
}

// takeAll takes the buffer and makes room for who waits for it. Its caller has just written
// something, or not.
func (c *Conn) takeAll(wrote bool) (b *box, finish bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote {
		c.vigil.wrote(c.wrote, c.server.vanishedAfter)
	}
	c.server.answers.giveBack(c.out.taken)
	c.out.taken = 0
	c.ackAllLocked()
	b = c.out.take()
	c.out.asleep = b == nil
	c.out.queue.next()
	return b, c.out.finish
}

// writeBytes gives the peer WriteTimeout for each piece, and again whenever it has taken
// some of one, which layers above TCP do not tell.
func (c *Conn) writeBytes(b []byte) error {
	c.writing.Store(true)
	defer c.writing.Store(false)
	for len(b) > 0 {
		deadline := time.Now().Add(c.server.cfg.WriteTimeout)
		if err := c.nc.SetWriteDeadline(deadline); err != nil {
			return fmt.Errorf("set write deadline: %w", err)
		}
		n, err := c.nc.Write(b[:min(len(b), writeBytes)])
		c.server.metrics.bytesOut.Add(float64(n))
		b = b[n:]
		switch {
		case err == nil || n > 0 && errors.Is(err, os.ErrDeadlineExceeded):
		case time.Now().Before(deadline):
			return fmt.Errorf("write: %w", err)
		default: // WebSockets have other words for it
			return fmt.Errorf("write: %w: %w", os.ErrDeadlineExceeded, err)
		}
	}
	c.wrote = time.Now()
	return nil
}

func (c *Conn) writeFailed(err error) {
	c.mu.Lock()
	c.out.failed = true
	c.out.take()
	c.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.server.metrics.refuse(reasonWrite)
	}
	c.cut(err)
}

// attend does what is due by the clock, and tells how long nothing will be. The writing
// goroutine calls it when there is nothing to write.
func (c *Conn) attend(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened || c.out.deaf() {
		return time.Hour
	}
	if c.vigil.wait(now) <= 0 && c.vanishedLocked(now) || c.silentLocked(now) {
		return 0
	}
	quiet := now.Sub(c.wrote)
	if quiet >= c.heartbeat {
		c.out.buf = wire.AppendEmptyFrame(c.out.open())
		return 0
	}
	return min(c.server.cfg.IdleTimeout-c.in.silent(now), c.heartbeat-quiet, c.vigil.wait(now))
}
