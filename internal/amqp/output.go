package amqp

import "sync/atomic"

// output is what waits to be written. Everybody appends whole frames to buf, with the
// connection's mutex held, so what is appended later is written later; the writing
// goroutine takes the buffer away, whole, and writes it while the next one fills.
//
// Messages stop at the high-water mark: a link that finds the buffer full, or others in the queue,
// joins the queue (link_out.go). When the writing goroutine takes the buffer the first in the queue
// gets the turn; it fills in what it can and passes the turn on while there is room. So links share
// a connection in turns of up to the mark, one with nothing to send or without credit is never
// waited for, and a peer that takes nothing stops the links of this connection and nobody else's.
//
// Answers do not wait, for the reading goroutine makes them, and a peer that waits for us
// to read must not make us wait for it to read. They are bounded by their own budget.
//
// The connection is its owner. All fields are guarded by Conn.mu.
type output struct {
	pool    *bufferPool
	box     *box    // where buf came from; nil when there is none
	buf     []byte  // whole frames
	answers answers // what of buf is no message
	// opened: our open is in buf, or was. The reading goroutine alone sets it, and reads it
	// without mu.
	opened bool
	// closed: the connection's close is in buf, or was: nothing follows it, and of what the peer
	// sends all but its close is ignored, for which the reading goroutine reads it without mu.
	// failed: nothing can be written any more. Either way what is appended is dropped.
	closed atomic.Bool
	failed bool
	// finish: the writing goroutine ends when all is written.
	finish bool
	// acks are the sessions that have accepted deliveries to report.
	acks  []*session
	queue linkQueue

	asleep bool          // the writing goroutine waits for wake
	wake   chan struct{} // holds one
}

// deaf: whatever is appended would be dropped.
func (o *output) deaf() bool { return o.closed.Load() || o.failed }

// full: messages have to wait.
func (o *output) full() bool { return len(o.buf) >= highWaterBytes }

// open gives the buffer to append to.
func (o *output) open() []byte {
	if o.box == nil {
		o.box = o.pool.get()
		o.buf = o.box.bytes[:0]
	}
	return o.buf
}

// raw appends bytes that are no frame: a protocol header.
func (o *output) raw(b []byte) {
	if !o.deaf() {
		o.buf = append(o.open(), b...)
		o.signal()
	}
}

// acknowledge reports all accepted deliveries.
func (o *output) acknowledge() {
	for n := len(o.acks); n > 0; n = len(o.acks) {
		s := o.acks[n-1]
		o.acks[n-1] = nil
		o.acks = o.acks[:n-1]
		s.listed = false
		s.ackLocked() // may close the connection, which comes here again
	}
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
	o.box, o.buf = nil, nil
	o.answers.take()
	return b
}

// answers bounds the answers that wait to be written: a peer that makes us answer and takes
// nothing is closed. Each connection has some bytes for nothing; what is more is reserved, in
// steps, from a budget that all connections share. Its owner is the output; guarded by Conn.mu.
type answers struct {
	all     *budget
	waiting int // bytes in the output's buffer
	// reserved is what the buffer has of the budget, taken what the one has that is being written.
	reserved, taken int
	overflow        bool // there were too many; which was reported
}

// add counts bytes of an answer. It is false, once, where that is too much: more than limit, or
// than the budget has.
func (a *answers) add(n, limit int) bool {
	a.waiting += n
	if a.overflow {
		return true
	}
	a.overflow = a.waiting > limit
	for !a.overflow && a.waiting > freeAnswerBytes+a.reserved {
		if a.overflow = !a.all.take(answerStepBytes); !a.overflow {
			a.reserved += answerStepBytes
		}
	}
	return !a.overflow
}

// take says that the buffer is being written.
func (a *answers) take() {
	a.waiting = 0
	a.taken, a.reserved = a.taken+a.reserved, 0
}

// written gives back what the written buffer had.
func (a *answers) written() {
	a.all.giveBack(a.taken)
	a.taken = 0
}

// giveBack gives back everything.
func (a *answers) giveBack() {
	a.take()
	a.written()
}
