package amqp

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// outgoing is what a link has by which the peer receives. Send waits for three things:
// credit, which is the link's; the window, which is the session's; and room in the
// output, which is the connection's and is shared in turns.
type outgoing struct {
	link *Link
	// ctx is that of the source's Run; it ends with the link.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan struct{} // holds one; look again what there is

	// Guarded by Conn.mu.
	count  uint32 // deliveries begun, modulo 2^32
	credit uint32 // deliveries that the peer wants to have
	// rest is what is still to be sent of a message whose first frames used up the window;
	// restID its delivery.
	rest   []byte
	restID uint32
	drain  draining

	blocked    bool // Send or WaitCredit waits
	hungry     bool // the source is to be woken when the peer wants a message
	queued     bool // in linkQueue
	next, prev *outgoing
}

// wakeUp lets a waiting Send look again, or a source that has found no credit.
func (o *outgoing) wakeUp() {
	if o.hungry && o.wantedLocked() {
		o.hungry = false
		o.link.Wake()
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Send sends settled messages: up to count of them, all that credit, window and room
// allow at once, and at least one, for which it waits until ctx or the link ends. The
// i-th message is what appendMessage appends; it is called with locks held, so it must
// only append. It returns how many were sent. Only for sources; one goroutine at a time.
func (l *Link) Send(ctx context.Context, count int, appendMessage func(dst []byte, i int) []byte) (int, error) {
	if count <= 0 {
		return 0, nil
	}
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := l.sourceLocked(); err != nil {
		return 0, err
	}
	o := l.out
	o.drain.dry = false
	defer o.stepBackLocked()
	for l.state == linkAttached {
		if o.readyLocked() {
			if n := o.sendLocked(count, appendMessage); n > 0 {
				c.server.metrics.messagesOut.Add(float64(n))
				return n, nil
			}
			continue
		}
		if err := o.waitLocked(ctx); err != nil {
			return 0, err
		}
	}
	return 0, ErrLinkEnded
}

// WaitCredit waits until a message could be sent as far as the peer is concerned, so that
// nobody fetches what he cannot send.
func (l *Link) WaitCredit(ctx context.Context) error {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := l.sourceLocked(); err != nil {
		return err
	}
	for l.state == linkAttached {
		if l.out.wantedLocked() {
			return nil
		}
		if err := l.out.waitLocked(ctx); err != nil {
			l.out.drainOnLocked()
			return err
		}
	}
	return ErrLinkEnded
}

// Wanted reports whether a message could be sent as far as the peer is concerned. If not, it wakes the
// source when one could be: for sources that run on demand, as WaitCredit is for others.
func (l *Link) Wanted() bool {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.sourceLocked() != nil {
		return false
	}
	l.out.hungry = !l.out.wantedLocked()
	return !l.out.hungry
}

// sourceLocked refuses what is no source's link, or is none yet.
func (l *Link) sourceLocked() error {
	switch {
	case l.state == linkEnded:
		return ErrLinkEnded
	case l.state == linkAttaching || l.out == nil:
		return errNotSource
	case l.out.ctx.Err() != nil: // the connection was cut, of which the link hears later
		return ErrLinkEnded
	default:
		return nil
	}
}

// wantedLocked: the peer wants a message.
func (o *outgoing) wantedLocked() bool {
	return o.link.session.outgoing > 0 && (o.credit > 0 || o.rest != nil)
}

// readyLocked: the peer wants a message, there is room, and it is our turn.
func (o *outgoing) readyLocked() bool {
	out := &o.link.session.conn.out
	q, full := &out.queue, out.full()
	if !o.wantedLocked() {
		q.pass(o, full)
		return false
	}
	if !full && (q.turn == o || q.turn == nil && q.first == nil) {
		return true
	}
	q.join(o)
	if !full {
		q.next()
	}
	return q.turn == o
}

// stepBackLocked leaves the queue, and lets the next have its turn. A message that is
// half sent will not be finished: it is taken back, which goes beyond the window by one
// frame, or it could not be said at all.
func (o *outgoing) stepBackLocked() {
	s := o.link.session
	out := &s.conn.out
	out.queue.leave(o)
	out.queue.pass(o, out.full())
	if o.rest != nil {
		o.rest = nil
		s.nextOutgoing++
		s.frameLocked(func(dst []byte) []byte {
			return wire.AppendTransfer(dst, &wire.Transfer{
				Handle: o.link.request.Handle, DeliveryID: wire.Some(o.restID), Settled: wire.Some(true), Aborted: true,
			})
		})
	}
	o.drainOnLocked()
}

// waitLocked waits, without the lock, for a change.
func (o *outgoing) waitLocked(ctx context.Context) error {
	mu := &o.link.session.conn.mu
	o.blocked = true
	mu.Unlock()
	defer func() {
		mu.Lock()
		o.blocked = false
	}()
	select {
	case <-o.wake:
		return nil
	case <-o.ctx.Done():
		return ErrLinkEnded
	case <-ctx.Done():
		return fmt.Errorf("send: %w", context.Cause(ctx))
	}
}

// sendLocked sends what it can at once. It may be nothing, or only a part of a message.
func (o *outgoing) sendLocked(count int, appendMessage func([]byte, int) []byte) int {
	s, out := o.link.session, &o.link.session.conn.out
	if o.rest != nil { // the message that was begun comes first
		o.rest = o.continueLocked(o.rest)
		out.signal()
		if len(o.rest) > 0 {
			return 0
		}
		o.rest = nil
		return 1
	}
	n := 0
	for n < count && o.credit > 0 && s.outgoing > 0 && !out.full() {
		if !o.messageLocked(appendMessage, n) {
			break
		}
		n++
	}
	out.signal()
	return n
}

// messageLocked sends one message, in several frames where it has to be, as many as the window
// allows. It is false when the window is too small for all of it: the first of a Send is then
// begun, and a later one left alone.
func (o *outgoing) messageLocked(appendMessage func([]byte, int) []byte, i int) bool {
	s, c := o.link.session, o.link.session.conn
	dst, mark := wire.BeginFrame(c.out.open(), wire.FrameAMQP, s.channel)
	dst = o.appendTransfer(dst, false)
	head := len(dst)
	dst = appendMessage(dst, i)
	if len(dst)-int(mark) <= c.frameSize {
		c.out.buf = wire.EndFrame(dst, mark)
		s.sentLocked()
		o.beginLocked(s)
		return true
	}
	message := dst[head:]
	if i > 0 && len(message)/(c.frameSize/2) >= int(s.outgoing) {
		return false
	}
	b := c.server.writing.get() // the frames' heads have to go between
	defer c.server.writing.put(b)
	b.bytes = append(b.bytes[:0], message...)
	rest := o.pieceLocked(b.bytes, o.appendTransfer)
	o.restID = s.nextDelivery
	o.beginLocked(s)
	if rest = o.continueLocked(rest); len(rest) > 0 {
		o.rest = append([]byte(nil), rest...)
		return false
	}
	return true
}

// appendTransfer writes the head of a delivery's first frame.
func (o *outgoing) appendTransfer(dst []byte, more bool) []byte {
	id := o.link.session.nextDelivery
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], id)
	return wire.AppendTransfer(dst, &wire.Transfer{
		Handle: o.link.request.Handle, DeliveryID: wire.Some(id), DeliveryTag: tag[:],
		MessageFormat: wire.Some(uint32(0)), Settled: wire.Some(true), More: more,
	})
}

// sentLocked counts a frame.
func (s *session) sentLocked() {
	s.nextOutgoing++
	s.outgoing--
}

// beginLocked counts a delivery.
func (o *outgoing) beginLocked(s *session) {
	s.nextDelivery++
	o.count++
	o.credit--
}

// continueLocked sends more of a message that was begun, while the window allows it, and gives
// the rest.
func (o *outgoing) continueLocked(message []byte) []byte {
	for len(message) > 0 && o.link.session.outgoing > 0 {
		message = o.pieceLocked(message, o.appendContinuation)
	}
	return message
}

// pieceLocked sends as much of a message as one frame holds, and gives the rest.
func (o *outgoing) pieceLocked(message []byte, appendHead func(dst []byte, more bool) []byte) []byte {
	s, c := o.link.session, o.link.session.conn
	dst, mark := wire.BeginFrame(c.out.open(), wire.FrameAMQP, s.channel)
	body := len(dst)
	dst = appendHead(dst, true)
	room := c.frameSize - (len(dst) - int(mark))
	if len(message) <= room {
		dst = appendHead(dst[:body], false) // as long as the other
		room = len(message)
	}
	dst = append(dst, message[:room]...)
	c.out.buf = wire.EndFrame(dst, mark)
	s.sentLocked()
	return message[room:]
}

// appendContinuation writes the head of a delivery's later frames. Some clients look at
// settled on the last one.
func (o *outgoing) appendContinuation(dst []byte, more bool) []byte {
	return wire.AppendTransfer(dst, &wire.Transfer{
		Handle: o.link.request.Handle, DeliveryID: wire.Some(o.restID), Settled: wire.Some(true), More: more,
	})
}
