package amqp

import (
	"bytes"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// next takes one frame and does what it asks. What is wrong with a session or a link is
// dealt with here; an error ends the connection.
func (c *Conn) next() error {
	h, body, err := c.in.frame()
	if err != nil {
		return err
	}
	if h.Type != wire.FrameAMQP {
		return fmt.Errorf("%w: %d where AMQP's 0 is due", errFrameType, h.Type)
	}
	if len(body) == 0 {
		return nil // a heartbeat
	}
	r := wire.NewReader(body)
	d, err := r.ReadDescriptor()
	if err != nil {
		return fmt.Errorf("read performative: %w", err)
	}
	if c.ignoring.Load() && d != wire.DescriptorClose {
		return nil
	}
	switch d {
	case wire.DescriptorTransfer:
		return c.onTransfer(h.Channel, &r)
	case wire.DescriptorFlow:
		return c.onFlow(h.Channel, &r)
	case wire.DescriptorDisposition:
		return c.onDisposition(h.Channel, &r)
	}
	// The rest is rare, and what is read of it is kept: it gets bytes of its own.
	r = wire.NewReader(bytes.Clone(r.Rest()))
	return c.onRare(d, h.Channel, &r)
}

func (c *Conn) onRare(d wire.Descriptor, channel uint16, r *wire.Reader) error {
	switch d {
	case wire.DescriptorOpen:
		return c.onOpen(r)
	case wire.DescriptorBegin:
		return c.onBegin(channel, r)
	case wire.DescriptorAttach:
		return c.onAttach(channel, r)
	case wire.DescriptorDetach:
		return c.onDetach(channel, r)
	case wire.DescriptorEnd:
		return c.onEnd(channel, r)
	case wire.DescriptorClose:
		return c.onClose(r)
	default:
		return fmt.Errorf("%w 0x%x", errPerformative, uint64(d))
	}
}

// onOpen answers the peer's open and asks the handler for its side.
func (c *Conn) onOpen(r *wire.Reader) error {
	if c.opened {
		return errOpenTwice
	}
	o, err := r.ReadOpen()
	if err != nil {
		return fmt.Errorf("read open: %w", err)
	}
	ours := c.server.cfg.MaxFrameBytes
	if size := o.MaxFrameSize.Or(ours); size < wire.MinMaxFrameBytes {
		return fmt.Errorf("%w: %d", errPeerFrameSize, size)
	}
	c.frameSize = int(min(ours, o.MaxFrameSize.Or(ours)))
	c.in.max = int(ours)
	c.hostname = o.Hostname.Value
	c.answerOpen()
	c.beatFor(o.IdleTimeout)
	c.log.Debug("AMQP connection opened", "container", o.ContainerID, "hostname", c.hostname,
		"mechanism", c.identity.Mechanism, "properties", o.Properties)
	return c.connected()
}

// answerOpen sends our open, once.
func (c *Conn) answerOpen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened {
		return
	}
	cfg := &c.server.cfg
	c.frameLocked(wire.FrameAMQP, 0, func(dst []byte) []byte {
		return wire.AppendOpen(dst, &wire.Open{
			ContainerID:  c.server.container,
			MaxFrameSize: wire.Some(cfg.MaxFrameBytes),
			ChannelMax:   wire.Some(c.channelMax()),
			IdleTimeout:  wire.Some(uint32(cfg.IdleTimeout.Milliseconds())),
		})
	})
	c.opened = true
	c.heartbeat = maxHeartbeat
	c.opening.Stop()
}

// beatFor makes our silences as short as the peer asks for: half of what it would bear.
func (c *Conn) beatFor(bears wire.Opt[uint32]) {
	if !bears.Set || bears.Value == 0 {
		return
	}
	half := time.Duration(bears.Value) * time.Millisecond / 2
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heartbeat = max(minHeartbeat, min(half, maxHeartbeat))
	c.out.signal() // the writing goroutine may have gone to sleep for longer already
}

// connected asks the handler for its side of the connection, unless it is refused.
func (c *Conn) connected() error {
	var err error
	if c.refusal != nil {
		err = c.refusal
	} else {
		c.peer, err = c.server.cfg.Handler.Connected(c)
	}
	if err == nil {
		return nil
	}
	c.peer = nil
	c.log.Debug("AMQP connection refused", "error", err)
	c.shut(asError(err))
	return errSaid
}

func (c *Conn) channelMax() uint16 {
	return uint16(max(minChannelMax, c.server.cfg.MaxSessions))
}

func (c *Conn) handleMax() uint32 {
	return uint32(max(minHandleMax, c.server.cfg.MaxLinks))
}

// onClose: the peer's last word. Ours follows when all links have been closed.
func (c *Conn) onClose(r *wire.Reader) error {
	cl, err := r.ReadClose()
	if err != nil {
		return fmt.Errorf("read close: %w", err)
	}
	if cl.Error != nil {
		return fmt.Errorf("%w: %w", errPeerClosed, cl.Error)
	}
	return errPeerClosed
}

// session gives the session of a channel. It is nil where we have ended it and the
// peer may not know yet: what comes for it is ignored.
func (c *Conn) session(channel uint16) (*session, error) {
	s := c.last
	if s == nil || s.channel != channel {
		if s = c.sessions[channel]; s == nil {
			if !c.opened {
				return nil, errNotOpen
			}
			return nil, fmt.Errorf("%w: %d", errChannelUnknown, channel)
		}
		c.last = s
	}
	if s.over {
		return nil, nil
	}
	return s, nil
}

// onBegin begins a session. Beyond the limit it is begun and ended at once, for there is
// no other way to refuse one.
func (c *Conn) onBegin(channel uint16, r *wire.Reader) error {
	b, err := r.ReadBegin()
	switch {
	case err != nil:
		return fmt.Errorf("read begin: %w", err)
	case !c.opened:
		return errNotOpen
	case channel > c.channelMax():
		return fmt.Errorf("%w: %d", errChannelMax, channel)
	case c.sessions[channel] != nil:
		return fmt.Errorf("%w: %d", errChannelInUse, channel)
	case len(c.sessions) >= 2*c.server.cfg.MaxSessions:
		return errSessions
	}
	s := c.begin(channel, &b)
	if c.live > c.server.cfg.MaxSessions {
		c.refuse(errSessions)
		s.end(asError(errSessions))
	}
	return nil
}

// onAttach: see session.attach.
func (c *Conn) onAttach(channel uint16, r *wire.Reader) error {
	body := r.Rest()
	a, err := readAttach(body)
	if err != nil {
		return fmt.Errorf("read attach: %w", err)
	}
	s, err := c.session(channel)
	if s == nil {
		return err
	}
	return s.mend(s.attach(a, body))
}

// onFlow: see session.flow.
func (c *Conn) onFlow(channel uint16, r *wire.Reader) error {
	f, err := r.ReadFlow()
	if err != nil {
		return fmt.Errorf("read flow: %w", err)
	}
	s, err := c.session(channel)
	if s == nil {
		return err
	}
	return s.mend(s.flow(&f))
}

// onTransfer: see session.transfer.
func (c *Conn) onTransfer(channel uint16, r *wire.Reader) error {
	t, err := r.ReadTransfer()
	if err != nil {
		return fmt.Errorf("read transfer: %w", err)
	}
	s, err := c.session(channel)
	if s == nil {
		return err
	}
	if err := s.transfer(&t, r.Rest()); err != nil {
		return s.mend(err)
	}
	return nil
}

// onDisposition: what became of deliveries is ours to say. All that we send is settled,
// and so is all that we have answered; clients that say so too are right, and that is all.
func (c *Conn) onDisposition(channel uint16, r *wire.Reader) error {
	if _, err := r.ReadDisposition(); err != nil {
		return fmt.Errorf("read disposition: %w", err)
	}
	_, err := c.session(channel)
	return err
}

// onDetach: see session.detach.
func (c *Conn) onDetach(channel uint16, r *wire.Reader) error {
	d, err := r.ReadDetach()
	if err != nil {
		return fmt.Errorf("read detach: %w", err)
	}
	s, err := c.session(channel)
	if s == nil {
		return err
	}
	return s.mend(s.detach(&d))
}

// onEnd ends a session, or is the answer to our end of it.
func (c *Conn) onEnd(channel uint16, r *wire.Reader) error {
	e, err := r.ReadEnd()
	if err != nil {
		return fmt.Errorf("read end: %w", err)
	}
	if _, err := c.session(channel); err != nil {
		return err
	}
	s := c.sessions[channel]
	if e.Error != nil {
		c.log.Debug("AMQP session ended by the client", "error", e.Error)
	}
	s.end(nil)
	c.forget(s)
	return nil
}
