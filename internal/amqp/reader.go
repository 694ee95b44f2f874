package amqp

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// reader is the reading goroutine: it takes one frame at a time and does what it asks, one
// method for each performative. Its fields are its own, but for in.silent.
type reader struct {
	conn  *Conn
	in    *input
	peer  Peer       // nil until the connection is open
	parts reassembly // of unfinished messages
	// strange is how many bytes a stranger has sent.
	strange int
}

// run goes through the layers and then takes frames, until there is a reason to end.
func (r *reader) run() (err error) {
	c := r.conn
	defer c.recoverAs("reading", &err)
	c.mu.Lock()
	c.deadlines.opening = time.AfterFunc(c.server.cfg.OpenTimeout, func() {
		c.server.metrics.refuse(reasonOpenTimeout)
		c.cut(errors.New("no open in time"))
	})
	c.mu.Unlock()
	tune(c.nc)
	if err := c.handshake.run(r.in); err != nil {
		return err
	}
	for {
		if err := r.next(); err != nil {
			return err
		}
	}
}

// say reports to the peer why the connection ends, and hears the peer's last word if there is one
// to come. All that was on the connection has ended.
func (r *reader) say(err error) {
	c := r.conn
	_, ours := judge(err)
	switch {
	case ours && !c.handshake.agreed:
		c.refuse(err)
		return // there is no language yet to say it in
	case ours:
		c.refuse(err)
		c.answerOpen()
		c.shut(asError(err))
	case errors.Is(err, errPeerClosed):
		c.shut(nil)
		return
	case !errors.Is(err, errSaid):
		return // the connection is broken, or was cut
	}
	c.mu.Lock()
	c.allowLocked(closeWait)
	c.mu.Unlock()
	if !c.out.opened || errors.Is(err, errFrameHeader) || errors.Is(err, errFrameTooLarge) {
		r.in.discard() // there are no frames to be distinguished
		return
	}
	var last error // all frames are ignored but the peer's close
	defer c.recoverAs("reading", &last)
	for last == nil {
		last = r.next()
	}
}

// next takes one frame and does what it asks. What is wrong with a session or a link is
// dealt with here; an error ends the connection.
func (r *reader) next() error {
	r.welcome()
	h, body, err := r.in.frame()
	if err != nil {
		return err
	}
	if !r.conn.known.Load() {
		if r.strange += int(h.Size); r.strange > strangerBytes {
			return errStrangerBytes
		}
	}
	if parts := &r.parts; len(parts.unfinished) > 0 {
		parts.clock.stop()
		defer parts.clock.goOn()
	}
	if h.Type != wire.FrameAMQP {
		return fmt.Errorf("%w: %d where AMQP's 0 is due", errFrameType, h.Type)
	}
	if len(body) == 0 {
		return nil // a heartbeat
	}
	args := wire.NewReader(body)
	d, err := args.ReadDescriptor()
	if err != nil {
		return fmt.Errorf("read performative: %w", err)
	}
	if r.conn.out.closed.Load() && d != wire.DescriptorClose {
		return nil
	}
	switch d {
	case wire.DescriptorTransfer:
		return r.onTransfer(h.Channel, &args)
	case wire.DescriptorFlow:
		return r.onFlow(h.Channel, &args)
	case wire.DescriptorDisposition:
		return r.onDisposition(h.Channel, &args)
	}
	// The rest is rare, and what is read of it is kept: it gets bytes of its own.
	args = wire.NewReader(bytes.Clone(args.Rest()))
	switch d {
	case wire.DescriptorOpen:
		return r.onOpen(&args)
	case wire.DescriptorBegin:
		return r.onBegin(h.Channel, &args)
	case wire.DescriptorAttach:
		return r.onAttach(h.Channel, &args)
	case wire.DescriptorDetach:
		return r.onDetach(h.Channel, &args)
	case wire.DescriptorEnd:
		return r.onEnd(h.Channel, &args)
	case wire.DescriptorClose: // the peer's last word; ours follows when all links have been closed
		cl, err := args.ReadClose()
		if err != nil {
			return fmt.Errorf("read close: %w", err)
		}
		if cl.Error != nil {
			return fmt.Errorf("%w: %w", errPeerClosed, cl.Error)
		}
		return errPeerClosed
	default:
		return fmt.Errorf("%w 0x%x", errPerformative, uint64(d))
	}
}

// welcome takes what clients may send from a peer that was a stranger. A stranger hears that it is
// none any more before it sends anything of that.
func (r *reader) welcome() {
	if c := r.conn; r.in.pool != c.server.reading && c.known.Load() {
		r.in.max, r.in.pool, r.in.strange = int(c.server.cfg.MaxFrameBytes), c.server.reading, false
	}
}

// onOpen answers the peer's open and asks the handler for its side, unless the connection is
// refused.
func (r *reader) onOpen(args *wire.Reader) error {
	c := r.conn
	if c.out.opened {
		return errOpenTwice
	}
	o, err := args.ReadOpen()
	if err != nil {
		return fmt.Errorf("read open: %w", err)
	}
	ours := c.server.cfg.MaxFrameBytes
	if size := o.MaxFrameSize.Or(ours); size < wire.MinMaxFrameBytes {
		return fmt.Errorf("%w: %d", errPeerFrameSize, size)
	}
	c.frameSize = int(min(ours, o.MaxFrameSize.Or(ours)))
	r.in.max = c.allowed(int(ours), strangerFrameBytes)
	c.hostname = o.Hostname.Value
	c.answerOpen()
	c.beatFor(o.IdleTimeout)
	c.log.Debug("AMQP connection opened", "container", o.ContainerID, "hostname", c.hostname,
		"mechanism", c.handshake.identity.Mechanism, "properties", o.Properties)
	if c.refusal != nil {
		err = c.refusal
	} else {
		r.peer, err = c.server.cfg.Handler.Connected(c)
	}
	if err == nil {
		return nil
	}
	r.peer = nil
	c.log.Debug("AMQP connection refused", "error", err)
	c.shut(asError(err))
	return errSaid
}

// session gives the session of a channel. It is nil where we have ended it and the
// peer may not know yet: what comes for it is ignored.
func (r *reader) session(channel uint16) (*session, error) {
	s := r.conn.sessions.find(channel)
	switch {
	case s == nil && !r.conn.out.opened:
		return nil, errNotOpen
	case s == nil:
		return nil, fmt.Errorf("%w: %d", errChannelUnknown, channel)
	case s.over:
		return nil, nil
	}
	return s, nil
}

// onBegin begins a session. Beyond the limit it is begun and ended at once, for there is
// no other way to refuse one.
func (r *reader) onBegin(channel uint16, args *wire.Reader) error {
	c := r.conn
	b, err := args.ReadBegin()
	switch {
	case err != nil:
		return fmt.Errorf("read begin: %w", err)
	case !c.out.opened:
		return errNotOpen
	case channel > c.server.cfg.channelMax():
		return fmt.Errorf("%w: %d", errChannelMax, channel)
	case c.sessions.byChannel[channel] != nil:
		return fmt.Errorf("%w: %d", errChannelInUse, channel)
	}
	most := c.allowed(c.server.cfg.MaxSessions, StrangerSessions)
	if len(c.sessions.byChannel) >= 2*most {
		return errSessions
	}
	s := c.begin(channel, &b)
	if c.sessions.live > most {
		c.refuse(errSessions)
		s.end(asError(errSessions))
	}
	return nil
}

// onAttach: see session.attach.
func (r *reader) onAttach(channel uint16, args *wire.Reader) error {
	body := args.Rest()
	a, err := readAttach(body)
	if err != nil {
		return fmt.Errorf("read attach: %w", err)
	}
	s, err := r.session(channel)
	if s == nil {
		return err
	}
	return s.mend(s.attach(a, body))
}

// onFlow: see session.flow.
func (r *reader) onFlow(channel uint16, args *wire.Reader) error {
	f, err := args.ReadFlow()
	if err != nil {
		return fmt.Errorf("read flow: %w", err)
	}
	s, err := r.session(channel)
	if s == nil {
		return err
	}
	s.flow(&f)
	return nil
}

// onTransfer takes a message or a part of one (§2.7.5).
func (r *reader) onTransfer(channel uint16, args *wire.Reader) error {
	t, err := args.ReadTransfer()
	if err != nil {
		return fmt.Errorf("read transfer: %w", err)
	}
	s, err := r.session(channel)
	if s == nil {
		return err
	}
	l, err := s.link(t.Handle)
	switch {
	case err != nil:
		return s.mend(err)
	case l.in == nil:
		return s.mend(fmt.Errorf("%w: %d", errDirection, t.Handle))
	}
	return s.mend(l.in.transfer(&t, args.Rest()))
}

// onDisposition: what became of deliveries is ours to say. All that we send is settled,
// and so is all that we have answered; clients that say so too are right, and that is all.
func (r *reader) onDisposition(channel uint16, args *wire.Reader) error {
	if _, err := args.ReadDisposition(); err != nil {
		return fmt.Errorf("read disposition: %w", err)
	}
	_, err := r.session(channel)
	return err
}

// onDetach: see session.detach.
func (r *reader) onDetach(channel uint16, args *wire.Reader) error {
	d, err := args.ReadDetach()
	if err != nil {
		return fmt.Errorf("read detach: %w", err)
	}
	s, err := r.session(channel)
	if s == nil {
		return err
	}
	return s.mend(s.detach(&d))
}

// onEnd ends a session, or is the answer to our end of it.
func (r *reader) onEnd(channel uint16, args *wire.Reader) error {
	c := r.conn
	e, err := args.ReadEnd()
	if err != nil {
		return fmt.Errorf("read end: %w", err)
	}
	switch _, err := r.session(channel); {
	case errors.Is(err, errChannelUnknown):
		// By its source go-amqp may end a session that it gave up before its begin was written.
		return nil
	case err != nil:
		return err
	}
	if e.Error != nil {
		c.log.Debug("AMQP session ended by the client", "error", e.Error)
	}
	c.sessions.byChannel[channel].end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions.byChannel, channel)
	c.sessions.last = nil
	return nil
}
