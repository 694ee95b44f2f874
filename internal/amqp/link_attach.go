package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// readAttach decodes an attach. Of one that is too large only the head is looked at, which
// is enough to refuse it.
func readAttach(body []byte) (*wire.Attach, error) {
	r := wire.NewReader(body)
	if len(body) > maxAttachBytes {
		return readAttachHead(&r)
	}
	a, err := r.ReadAttach()
	return &a, err
}

func readAttachHead(r *wire.Reader) (*wire.Attach, error) {
	var a wire.Attach
	if _, err := r.EnterList(); err != nil {
		return nil, err
	}
	var err error
	if a.Name, err = r.ReadString(); err != nil {
		return nil, err
	}
	if a.Handle, err = r.ReadUint(); err != nil {
		return nil, err
	}
	role, err := r.ReadBool()
	a.Role = wire.Role(role)
	return &a, err
}

// attach asks the handler for a link, and answers (§2.7.3). body is the attach's encoding.
func (s *session) attach(a *wire.Attach, body []byte) error {
	c := s.conn
	if int64(a.Handle) > int64(c.allowed(int(c.server.cfg.handleMax()), strangerHandle)) {
		return fmt.Errorf("%w: %d", errHandleMax, a.Handle)
	}
	if l, _ := s.link(a.Handle); l != nil {
		return l.bequeath(a.Handle, body)
	}
	l := &Link{session: s, request: &wire.Attach{
		Name: a.Name, Handle: a.Handle, Role: a.Role, InitialDeliveryCount: a.InitialDeliveryCount,
	}}
	l.asked.Store(a)
	l.demand.state.Store(demandWanted) // for what there is when it is attached
	defer l.forget()
	if err := s.add(l); err != nil {
		return err
	}
	t, err := s.admit(l, len(body))
	if err == nil {
		err = l.accept(t)
	}
	if err != nil {
		return l.refuse(err)
	}
	return nil
}

// bequeath lets an attach wait for the detach that the peer owes for the handle's last link.
// The Go client of Azure takes our detach for the end of a link and uses the handle anew,
// perhaps before it has said its own. What comes in between is still about the old link,
// for the client says nothing on the new one before its attach has been answered.
func (l *Link) bequeath(handle uint32, body []byte) error {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.state != linkEnded || l.heir != nil || len(body) > min(maxAttachBytes, c.allowed(maxHeirBytes, strangerHeirBytes)-c.sessions.heirs) {
		return fmt.Errorf("%w: %d", errHandleInUse, handle)
	}
	l.heir = body
	c.sessions.heirs += len(body)
	return nil
}

// add puts the link into the table. Links whose detach we await count too, up to a point.
func (s *session) add(l *Link) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions.links >= 2*c.allowed(c.server.cfg.MaxLinks, StrangerLinks) {
		return errLinks
	}
	c.sessions.links++
	for int64(len(s.links)) <= int64(l.request.Handle) {
		s.links = append(s.links, nil)
	}
	s.links[l.request.Handle] = l
	return nil
}

// uncountLocked is for each link that is taken out of the table.
func (s *session) uncountLocked(l *Link) {
	s.conn.sessions.links--
	s.conn.sessions.heirs -= len(l.heir)
}

// admit decides, first by our own rules and then by the handler's.
func (s *session) admit(l *Link, size int) (Terminus, error) {
	a := l.Request()
	switch {
	case size > maxAttachBytes:
		return Terminus{}, fmt.Errorf("%w: %d bytes, %d are allowed", errAttachSize, size, maxAttachBytes)
	case s.conn.sessions.links > s.conn.allowed(s.conn.server.cfg.MaxLinks, StrangerLinks):
		return Terminus{}, errLinks
	case a.Target != nil && a.Target.Coordinator:
		return Terminus{}, errCoordinator
	case s.named(l):
		return Terminus{}, fmt.Errorf("%w: %q", errNameInUse, a.Name)
	}
	t, err := s.conn.reader.peer.Attach(l)
	if err != nil {
		return t, err
	}
	if a.Role == wire.RoleSender && t.Sink != nil || a.Role == wire.RoleReceiver && t.Source != nil {
		return t, nil
	}
	if t.Sink != nil {
		t.Sink.Closed()
	}
	if t.Source != nil {
		t.Source.Closed()
	}
	return t, errors.New("the handler gave no end for the link's role")
}

// named: the session has another link of that name and role. Names that are equal on
// other sessions, or the other way round, mean nothing.
func (s *session) named(l *Link) bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	for _, other := range s.links {
		if other != nil && other != l && other.state != linkEnded &&
			other.request.Name == l.request.Name && other.request.Role == l.request.Role {
			return true
		}
	}
	return false
}

// refuse answers with an attach that has neither source nor target, and a detach with
// the error: the one form that all clients understand. Where the link's name does not fit
// the peer's frames there is no such answer, and the session has to end.
func (l *Link) refuse(err error) error {
	s, c := l.session, l.session.conn
	c.refuse(err)
	c.log.Log(c.ctx, levelOf(err), "AMQP link refused", "link", l.request.Name, "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	l.state = linkEnded
	// What the peer asked for is not kept while its detach is awaited.
	awaited := &Link{session: s, state: linkEnded, request: &wire.Attach{Handle: l.request.Handle}}
	awaited.in = &incoming{link: awaited} // to take whatever is still sent
	s.links[l.request.Handle] = awaited
	answer := wire.AppendAttach(nil, &wire.Attach{Name: l.request.Name, Handle: l.request.Handle, Role: !l.request.Role})
	if len(answer)+wire.FrameHeaderBytes > c.frameSize {
		return fmt.Errorf("%w: it has %d bytes", errNameSize, len(l.request.Name))
	}
	s.frameLocked(func(dst []byte) []byte { return append(dst, answer...) })
	l.appendDetachLocked(asError(err))
	return nil
}

// accept answers the attach, then sets the link going. It fails where the answer does
// not fit a frame of the peer's: the link's end is closed then.
func (l *Link) accept(t Terminus) error {
	c := l.session.conn
	answer := l.answer(&t)
	if l.request.Role == wire.RoleSender {
		start := l.request.InitialDeliveryCount.Or(0)
		l.in, l.terminus = &incoming{
			link: l, sink: t.Sink, count: start, allowed: start,
			maxBytes: cmp.Or(answer.MaxMessageSize.Value, c.server.cfg.MaxMessageBytes),
			limit:    cmp.Or(t.Credit, defaultCredit),
		}, t.Sink
	} else {
		out := &outgoing{link: l, wake: make(chan struct{}, 1)}
		out.ctx, out.cancel = context.WithCancelCause(c.ctx)
		c.mu.Lock() // Wake may look already
		l.out, l.terminus = out, t.Source
		if t.OnDemand {
			l.demand.source, l.demand.again = t.Source, make(chan struct{}, 1)
		}
		c.mu.Unlock()
	}
	if err := l.start(&answer); err != nil {
		if l.out != nil {
			l.out.cancel(ErrLinkEnded)
		}
		l.closeTerminus()
		return err
	}
	switch {
	case l.out == nil:
	case t.OnDemand:
		l.forget()
		c.runs.Add(1) // for the link, as long as it may be woken
		go l.meet()
	default:
		l.forget()
		c.runs.Go(func() { l.run(t.Source) })
	}
	return nil
}

// start sends the answer, and what follows right behind it.
func (l *Link) start(answer *wire.Attach) error {
	c := l.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	dst, mark := wire.BeginFrame(c.out.open(), wire.FrameAMQP, l.session.channel)
	dst = wire.EndFrame(wire.AppendAttach(dst, answer), mark)
	if size := len(dst) - int(mark); size > c.frameSize {
		return fmt.Errorf("%w: %d bytes, %d are allowed", errAnswerSize, size, c.frameSize)
	}
	if !c.out.deaf() {
		c.answeredLocked(dst, mark)
	}
	l.state = linkAttached
	c.server.metrics.linksOf(l.request.Role).Inc()
	switch {
	case c.out.deaf():
		l.endLocked()
	case l.early != nil:
		l.detachLocked(l.early.Error)
	case l.in != nil:
		l.in.creditLocked()
	}
	return nil
}

// answer is our attach: what the peer asked for, as far as it is not ours to say.
func (l *Link) answer(t *Terminus) wire.Attach {
	r := l.Request()
	a := wire.Attach{
		Name: r.Name, Handle: r.Handle, Role: !r.Role,
		SenderSettleMode: r.SenderSettleMode, ReceiverSettleMode: r.ReceiverSettleMode,
		Source: r.Source, Target: r.Target,
		OfferedCapabilities: t.Offered, Properties: t.Properties,
	}
	if t.MaxMessageBytes > 0 {
		a.MaxMessageSize = wire.Some(t.MaxMessageBytes)
		if theirs := r.MaxMessageSize.Value; theirs > 0 {
			a.MaxMessageSize.Value = min(theirs, t.MaxMessageBytes)
		}
	}
	if r.Role == wire.RoleReceiver {
		a.InitialDeliveryCount = wire.Some(uint32(0))
		if t.Settled {
			a.SenderSettleMode = wire.Some(wire.SenderSettled)
		}
	}
	return a
}
