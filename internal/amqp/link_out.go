package amqp

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// outgoing is what a link has by which the peer receives. Send waits for three things:
// credit, which is the link's; the window, which is the session's; and room in the
// output, which is the connection's and is shared in turns.
type outgoing struct {
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
	// drain: the peer wants its credit used up, or back; unanswered: it has not been told
	// yet that there is none any more. drainer gives it back when nothing has been sent for
	// a moment; drains tells it whether it is the last that was set. dry: the source has
	// said that it has nothing, and has sent nothing since.
	drain, unanswered, dry bool
	drainer                *time.Timer
	drains                 uint64

	blocked    bool // Send or WaitCredit waits
	queued     bool // in linkQueue
	next, prev *Link
}

func newOutgoing(ctx context.Context) *outgoing {
	o := &outgoing{wake: make(chan struct{}, 1)}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	return o
}

// wakeUp lets a waiting Send look again.
func (o *outgoing) wakeUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// stopLocked is called once, when the link ends.
func (o *outgoing) stopLocked() {
	o.rest = nil
	if o.drainer != nil {
		o.drainer.Stop()
	}
	o.cancel(ErrLinkEnded)
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
	l.out.dry = false
	defer l.stepBackLocked()
	for l.state == linkAttached {
		if l.readyLocked() {
			if n := l.sendLocked(count, appendMessage); n > 0 {
				c.server.metrics.messagesOut.Add(float64(n))
				return n, nil
			}
			continue
		}
		if err := l.waitLocked(ctx); err != nil {
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
		if l.wantedLocked() {
			return nil
		}
		if err := l.waitLocked(ctx); err != nil {
			l.drainOnLocked()
			return err
		}
	}
	return ErrLinkEnded
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
func (l *Link) wantedLocked() bool {
	return l.session.outgoing > 0 && (l.out.credit > 0 || l.out.rest != nil)
}

// readyLocked: the peer wants a message, there is room, and it is our turn.
func (l *Link) readyLocked() bool {
	q := &l.session.conn.out.queue
	full := len(l.session.conn.out.buf) >= highWaterBytes
	if !l.wantedLocked() {
		q.pass(l, full)
		return false
	}
	if !full && (q.turn == l || q.empty()) {
		return true
	}
	q.join(l)
	if !full {
		q.next()
	}
	return q.turn == l
}

// stepBackLocked leaves the queue, and lets the next have its turn. A message that is
// half sent will not be finished.
func (l *Link) stepBackLocked() {
	out := &l.session.conn.out
	out.queue.leave(l)
	out.queue.pass(l, len(out.buf) >= highWaterBytes)
	if l.out.rest != nil {
		l.abortLocked()
	}
	l.drainOnLocked()
}

// waitLocked waits, without the lock, for a change.
func (l *Link) waitLocked(ctx context.Context) error {
	mu := &l.session.conn.mu
	l.out.blocked = true
	mu.Unlock()
	defer func() {
		mu.Lock()
		l.out.blocked = false
	}()
	select {
	case <-l.out.wake:
		return nil
	case <-l.out.ctx.Done():
		return ErrLinkEnded
	case <-ctx.Done():
		return fmt.Errorf("send: %w", context.Cause(ctx))
	}
}

// sendLocked sends what it can at once. It may be nothing, or only a part of a message.
func (l *Link) sendLocked(count int, appendMessage func([]byte, int) []byte) int {
	o, s, out := l.out, l.session, &l.session.conn.out
	if o.rest != nil {
		if !l.goOnLocked() {
			return 0
		}
		out.signal()
		return 1
	}
	n := 0
	for n < count && o.credit > 0 && s.outgoing > 0 && len(out.buf) < highWaterBytes {
		if !l.messageLocked(appendMessage, n) {
			break
		}
		n++
	}
	out.signal()
	return n
}

// messageLocked sends one message. It is false when the window is too small for all of it:
// the first of a Send is then begun, and a later one left alone.
func (l *Link) messageLocked(appendMessage func([]byte, int) []byte, i int) bool {
	s, c := l.session, l.session.conn
	dst, mark := wire.BeginFrame(c.out.open(), wire.FrameAMQP, s.channel)
	dst = l.appendTransfer(dst, false)
	head := len(dst)
	dst = appendMessage(dst, i)
	if len(dst)-int(mark) <= c.frameSize {
		c.out.buf = wire.EndFrame(dst, mark)
		s.sentLocked()
		l.out.beginLocked(s)
		return true
	}
	message := dst[head:]
	if i > 0 && len(message)/(c.frameSize/2) >= int(s.outgoing) {
		return false
	}
	b := c.server.writing.get() // the frames' heads have to go between
	defer c.server.writing.put(b)
	b.bytes = append(b.bytes[:0], message...)
	return l.splitLocked(b.bytes)
}

// appendTransfer writes the head of a delivery's first frame.
func (l *Link) appendTransfer(dst []byte, more bool) []byte {
	id := l.session.nextDelivery
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], id)
	return wire.AppendTransfer(dst, &wire.Transfer{
		Handle: l.request.Handle, DeliveryID: wire.Some(id), DeliveryTag: tag[:],
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

// splitLocked sends a message in several frames, as many as the window allows.
func (l *Link) splitLocked(message []byte) bool {
	s, o := l.session, l.out
	message = l.pieceLocked(message, l.appendTransfer)
	o.restID = s.nextDelivery
	o.beginLocked(s)
	for len(message) > 0 && s.outgoing > 0 {
		message = l.pieceLocked(message, l.appendContinuation)
	}
	if len(message) > 0 {
		o.rest = append([]byte(nil), message...)
		return false
	}
	return true
}

// goOnLocked sends more of a message that was begun, and tells whether that was all.
func (l *Link) goOnLocked() bool {
	for len(l.out.rest) > 0 && l.session.outgoing > 0 {
		l.out.rest = l.pieceLocked(l.out.rest, l.appendContinuation)
	}
	l.session.conn.out.signal()
	if len(l.out.rest) > 0 {
		return false
	}
	l.out.rest = nil
	return true
}

// pieceLocked sends as much of a message as one frame holds, and gives the rest.
func (l *Link) pieceLocked(message []byte, appendHead func(dst []byte, more bool) []byte) []byte {
	s, c := l.session, l.session.conn
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
func (l *Link) appendContinuation(dst []byte, more bool) []byte {
	return wire.AppendTransfer(dst, &wire.Transfer{
		Handle: l.request.Handle, DeliveryID: wire.Some(l.out.restID), Settled: wire.Some(true), More: more,
	})
}

// abortLocked takes back a message of which only a part was sent. It goes beyond the
// window by one frame, or it could not be said at all.
func (l *Link) abortLocked() {
	l.out.rest = nil
	s := l.session
	s.nextOutgoing++
	s.frameLocked(func(dst []byte) []byte {
		return wire.AppendTransfer(dst, &wire.Transfer{
			Handle: l.request.Handle, DeliveryID: wire.Some(l.out.restID), Settled: wire.Some(true), Aborted: true,
		})
	})
}
