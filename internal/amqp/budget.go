package amqp

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// budget is memory that all connections share: what one alone may have, times as many as
// there may be, would be more than there is.
type budget struct {
	limit int64 // fixed but for tests
	used  atomic.Int64
}

// take is false, and takes nothing, where that would be too much.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.giveBack(n)
	return false
}

func (b *budget) giveBack(n int) { b.used.Add(int64(-n)) }

// reassembly is the memory of a connection's unfinished messages. The reading goroutine's alone.
//
// Nobody waits for it: one that is not read on could not finish the others that it has begun, and so
// might wait for itself. A message that finds no room is refused instead, for its client to send it
// again, and of the messages that are in its way one that has been unfinished for long makes room.
type reassembly struct {
	conn *Conn
	held int // bytes
	// permit is where a stranger's are counted as well.
	permit *admission.Permit
	// unfinished are the messages that have begun.
	unfinished map[*part]struct{}
}

// begin takes note of a message that comes in several frames.
func (r *reassembly) begin(p *part) {
	c := r.conn
	// A stranger has no name yet. What it has begun stays nobody's when it has become a client.
	var holder string
	if known := c.traffic.holder.Load(); known != nil {
		holder = *known
	}
	p.share = c.server.cfg.Parts.Share(holder, c.tooSlow)
	p.due = time.AfterFunc(partTime, c.tooSlow)
	if r.unfinished == nil {
		r.unfinished = map[*part]struct{}{}
	}
	r.unfinished[p] = struct{}{}
}

// grow gives a message room for size bytes: twice as much as it had, within the limits of the message,
// the connection, the holder and all connections.
func (r *reassembly) grow(p *part, size int, maxMessage uint64) error {
	was := cap(p.buf)
	if size <= was {
		return nil
	}
	room := partRoom(max(size, int(min(2*uint64(was), maxMessage))))
	if limit := max(uint64(maxPartBytes), maxMessage); uint64(r.held+room-was) > limit {
		return fmt.Errorf("%w: %d bytes are allowed", errPartsFull, limit)
	}
	if !r.permit.Claim(room - was) {
		return errAllPartsFull
	}
	if !p.share.Grow(room) {
		r.permit.Free(room - was)
		return errAllPartsFull
	}
	r.held += room - was
	pool := &r.conn.server.partBuffers
	grown := append(pool.get(room), p.buf...)
	pool.put(p.buf)
	p.buf = grown
	return nil
}

// whole: all of a message has come. What it waits for from now on is not its client's doing.
func (r *reassembly) whole(p *part) {
	p.due.Stop()
	p.share.Touch()
}

// free gives back the memory of a message.
func (r *reassembly) free(p *part) {
	r.held -= cap(p.buf)
	p.share.Give()
	r.permit.Free(cap(p.buf))
	r.conn.server.partBuffers.put(p.buf)
	p.buf = nil
}

// end forgets a message.
func (r *reassembly) end(p *part) {
	r.free(p)
	p.due.Stop()
	delete(r.unfinished, p)
}

// endAll forgets all messages: nothing comes any more.
func (r *reassembly) endAll() {
	for p := range r.unfinished {
		r.end(p)
	}
}

// tooSlow ends a connection for a message that stays unfinished, from any goroutine.
func (c *Conn) tooSlow() {
	c.refuse(errPartLate)
	c.Close(asError(errPartLate))
}
