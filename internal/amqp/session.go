package amqp

import (
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// sessions is the table of a connection's sessions. The reading goroutine is its owner: it alone
// changes it, with Conn.mu held, and reads it without; others read it with mu.
type sessions struct {
	byChannel map[uint16]*session
	last      *session // the one that was last used; the reading goroutine's alone
	live      int      // sessions that have not ended
	links     int      // links of all sessions, those included whose detach we await
	heirs     int      // bytes of attaches that wait for their handles
}

// find gives the session of a channel, nil if there is none. Mostly it is the same as before.
func (t *sessions) find(channel uint16) *session {
	if t.last == nil || t.last.channel != channel {
		s := t.byChannel[channel]
		if s == nil {
			return nil
		}
		t.last = s
	}
	return t.last
}

// session is one session (§2.5). Its channel is the peer's and ours alike, and so are its
// links' handles, which spares us a table for each direction.
type session struct {
	conn    *Conn
	channel uint16

	// over: our end is in the output, and what comes is ignored until the peer's. The
	// reading goroutine's alone.
	over bool
	// links are found by their handle. They are changed by the reading goroutine alone,
	// with Conn.mu held, and read by it without.
	links []*Link

	// Guarded by Conn.mu. Transfers are frames here: a message may take several.
	nextIncoming uint32 // number of the peer's next transfer
	incoming     uint32 // transfers that the peer knows it may send
	nextOutgoing uint32 // number of our next transfer
	outgoing     uint32 // transfers that the peer wants to have
	nextDelivery uint32 // number of our next delivery

	// accepted deliveries, one after the other, that have not been reported to the peer.
	acking            bool
	ackFirst, ackLast uint32
	listed            bool // among output.acks
}

// firstOutgoing is the number of our first transfer, as the live service has it.
const firstOutgoing = 1

// begin makes a session and answers the peer's begin.
func (c *Conn) begin(channel uint16, b *wire.Begin) *session {
	s := &session{
		conn: c, channel: channel,
		nextIncoming: b.NextOutgoingID, incoming: incomingWindow,
		nextOutgoing: firstOutgoing, outgoing: b.IncomingWindow,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions.byChannel[channel] = s
	c.sessions.live++
	c.server.metrics.sessions.Inc()
	s.frameLocked(func(dst []byte) []byte {
		return wire.AppendBegin(dst, &wire.Begin{
			RemoteChannel:  wire.Some(channel),
			NextOutgoingID: s.nextOutgoing,
			IncomingWindow: s.incoming,
			OutgoingWindow: b.IncomingWindow,
			HandleMax:      wire.Some(c.server.cfg.handleMax()),
		})
	})
	return s
}

// frameLocked appends a frame of the session.
func (s *session) frameLocked(body func(dst []byte) []byte) {
	s.conn.frameLocked(wire.FrameAMQP, s.channel, body)
}

// mend ends what an error concerns, if that is less than the connection. Errors of links
// were dealt with where the link was known.
func (s *session) mend(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := judge(err); !ok || f.scope != scopeSession {
		return err
	}
	s.conn.refuse(err)
	s.end(asError(err))
	return nil
}

// end ends the session and all its links. The links are closed before the peer hears of it,
// so that what a link held is free when the peer goes on.
func (s *session) end(err *Error) {
	if s.over {
		return
	}
	s.over = true
	c := s.conn
	c.mu.Lock()
	s.endLinksLocked()
	c.mu.Unlock()
	s.notifyLinks()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions.live--
	c.server.metrics.sessions.Dec()
	for _, l := range s.links {
		if l != nil {
			s.uncountLocked(l)
		}
	}
	s.links = nil
	s.ackLocked()
	s.frameLocked(func(dst []byte) []byte { return wire.AppendEnd(dst, &wire.End{Error: c.fitting(err)}) })
}

// endLinksLocked ends the links: nothing is sent on them from then on.
func (s *session) endLinksLocked() {
	for _, l := range s.links {
		if l != nil {
			l.endLocked()
		}
	}
}

// notifyLinks closes the links' ends, when the links have ended.
func (s *session) notifyLinks() {
	for _, l := range s.links {
		if l != nil {
			l.closeTerminus()
			l.in.dropPart()
		}
	}
}

// endAll ends all that is on the connection, before the peer hears of it. The links end
// before the connection's context does, or sources would say that as their last word.
func (c *Conn) endAll(why error) {
	t := &c.sessions
	c.mu.Lock()
	for _, s := range t.byChannel {
		s.endLinksLocked()
	}
	c.cancel(why)
	c.mu.Unlock()
	for _, s := range t.byChannel {
		s.notifyLinks()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.metrics.sessions.Sub(float64(t.live))
	t.live, t.last = 0, nil
	clear(t.byChannel)
}

// link gives the link of a handle.
func (s *session) link(handle uint32) (*Link, error) {
	if int64(handle) < int64(len(s.links)) {
		if l := s.links[handle]; l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%w: %d", errHandleUnknown, handle)
}

// flow takes windows and credit (§2.7.4, §2.6.7).
func (s *session) flow(f *wire.Flow) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.windowLocked(f)
	if !f.Handle.Set {
		if f.Echo {
			s.flowLocked(nil)
		}
		return
	}
	// One client may give credit to a link that it has just detached: what it says of the
	// session counts, the rest is about nothing.
	l, err := s.link(f.Handle.Value)
	switch {
	case err != nil || l.state != linkAttached:
	case l.in != nil:
		l.in.flowLocked(f)
	default:
		l.out.flowLocked(f)
	}
}

// windowLocked learns how many transfers the peer wants to have (§2.5.6): as many as it
// says, less those that were under way when it said so.
func (s *session) windowLocked(f *wire.Flow) {
	seen := f.NextIncomingID.Or(firstOutgoing)
	under := max(0, int64(int32(s.nextOutgoing-seen)))
	was := s.outgoing
	s.outgoing = uint32(max(0, int64(f.IncomingWindow)-under))
	if was > 0 || s.outgoing == 0 {
		return
	}
	for _, l := range s.links {
		if l != nil && l.out != nil && l.state == linkAttached {
			l.out.wakeUp()
			l.out.drainOnLocked()
		}
	}
}

// flowLocked announces our windows, and for a link what link says.
func (s *session) flowLocked(link func(f *wire.Flow)) {
	s.incoming = incomingWindow
	f := wire.Flow{
		NextIncomingID: wire.Some(s.nextIncoming),
		IncomingWindow: s.incoming,
		NextOutgoingID: s.nextOutgoing,
		OutgoingWindow: max(s.outgoing, 1),
	}
	if link != nil {
		link(&f)
	}
	s.ackLocked()
	s.frameLocked(func(dst []byte) []byte { return wire.AppendFlow(dst, &f) })
}

// acceptLocked notes that a delivery has been accepted. The peer is notified of as many as
// possible at once, when the output is taken to be written.
func (s *session) acceptLocked(id uint32) {
	if s.acking && id == s.ackLast+1 && id != 0 {
		s.ackLast = id
		return
	}
	s.ackLocked()
	if !s.listed {
		s.listed = true
		s.conn.out.acks = append(s.conn.out.acks, s)
	}
	s.acking, s.ackFirst, s.ackLast = true, id, id
	s.conn.out.signal()
}

// ackLocked reports the accepted deliveries, if there are any.
func (s *session) ackLocked() {
	if !s.acking {
		return
	}
	s.acking = false
	d := wire.Disposition{
		Role: wire.RoleReceiver, First: s.ackFirst, Settled: true, State: wire.State{Outcome: wire.OutcomeAccepted},
	}
	if s.ackLast != s.ackFirst {
		d.Last = wire.Some(s.ackLast)
	}
	s.frameLocked(func(dst []byte) []byte { return wire.AppendDisposition(dst, &d) })
}
