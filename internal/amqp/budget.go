package amqp

import (
	"fmt"
	"sync"
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

// reassembly is the memory of a connection's unfinished messages. The reading goroutine's alone, but for the clock.
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
	// clock is that of the connection's reading, by which clients finish what they have begun.
	clock clock
}

// clock stands still while the connection is not read: a client that is kept waiting, such as by a sink that waits
// for storage, can finish nothing. Its methods may be called by many goroutines at once.
type clock struct {
	mu sync.Mutex
	// Both are guarded by mu: for how long it has stood still, and since when it does; zero: it goes.
	stood time.Duration
	since time.Time
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
}

func (c *clock) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stood += time.Since(c.since)
	c.since = time.Time{}
}

// still is for how long it has stood still.
func (c *clock) still() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		return c.stood
	}
	return c.stood + time.Since(c.since)
}

// deadline ends a connection for a message that its client does not finish.
type deadline struct {
	conn *Conn
	// began is when the message did, and still for how long the connection's clock had stood still by then.
	began time.Time
	still time.Duration

	mu    sync.Mutex
	met   bool        // all of the message has come, or it was given up; guarded by mu
	timer *time.Timer // guarded by mu
}

// newDeadline begins the time of a message.
func newDeadline(c *Conn) *deadline {
	d := &deadline{conn: c, began: time.Now(), still: c.reader.parts.clock.still()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(partTime, d.due)
	return d
}

// due is called when the time may have passed.
func (d *deadline) due() {
	if left := d.left(partTime); left > 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.met {
			d.timer.Reset(max(left, time.Second))
		}
		return
	}
	d.cut()
}

// press ends the connection, from any goroutine, if its client has had the time that one needs.
func (d *deadline) press() {
	if d.left(admission.DefaultPatience) <= 0 {
		d.cut()
	}
}

// left is how much its client has left of so much time.
func (d *deadline) left(of time.Duration) time.Duration {
	return of - (time.Since(d.began) - (d.conn.reader.parts.clock.still() - d.still))
}

func (d *deadline) cut() {
	d.mu.Lock()
	met := d.met
	d.mu.Unlock()
	if !met {
		d.conn.refuse(errPartLate)
		d.conn.Close(asError(errPartLate))
	}
}

// meet says that nothing more has to come.
func (d *deadline) meet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.met = true
	d.timer.Stop()
}

// begin takes note of a message that comes in several frames.
func (r *reassembly) begin(p *part) {
	c := r.conn
	// A stranger has no name yet. What it has begun stays nobody's when it has become a client.
	var holder string
	if known := c.traffic.holder.Load(); known != nil {
		holder = *known
	}
	p.deadline = newDeadline(c)
	p.share = c.server.cfg.Parts.Share(holder, p.deadline.press)
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
	p.deadline.meet()
	p.share.Spare()
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
	p.deadline.meet()
	delete(r.unfinished, p)
}

// endAll forgets all messages: nothing comes any more.
func (r *reassembly) endAll() {
	for p := range r.unfinished {
		r.end(p)
	}
}
