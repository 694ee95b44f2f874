package hub

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/Azure/go-amqp"
)

// usualLimit is taken where a hub does not say how large a message may be.
const usualLimit = 1 << 20

// capabilityGeo says that we do not take offsets for numbers.
const capabilityGeo = "com.microsoft:georeplication"

// sender sends to one address. Its link is opened when it is first needed, kept, and opened anew
// when it broke. Any number of goroutines send on it at once.
type sender struct {
	client  *Client
	address string
	// capability and properties are what an opening link asks for beside what all links do, and
	// check looks at the hub's reply. Empty and nil where there is nothing more to ask for.
	capability string
	properties map[string]any
	check      func(reported map[string]any) error
	// turn is held by who opens the link.
	turn chan struct{}

	mu     sync.Mutex
	link   *senderLink // guarded by mu; nil if there is none
	closed bool        // guarded by mu; there will be no link
}

// senderLink is a link on which events can be sent.
type senderLink struct {
	conn    *connection
	session *amqp.Session
	out     *outgoing
	// limit is the most that a message may measure.
	limit int
	// reported are the properties that the hub has answered with.
	reported map[string]any
}

func (h *Hub) sender(address string) (*sender, error) {
	if err := h.named(); err != nil {
		return nil, err
	}
	c := h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	s := c.senders[address]
	if s == nil {
		s = newSender(c, address)
		c.senders[address] = s
	}
	return s, nil
}

func newSender(c *Client, address string) *sender {
	return &sender{client: c, address: address, turn: make(chan struct{}, 1)}
}

// send sends a message once. Where more than one attempt is allowed, a link that was found broken
// is replaced at once: it may have been so for long. One that stood may be of a hub that was
// deleted, and there may be another of its name.
func (s *sender) send(ctx context.Context, m *amqp.Message, size int) error {
	stood := s.current() != nil
	err := s.sendOnce(ctx, m, size)
	if err == nil || ctx.Err() != nil || s.client.cfg.Retry.Attempts <= 1 {
		return err
	}
	if brokenLink(err) && judge(err, sending).passing || stood && ofNoHub(err) {
		err = s.sendOnce(ctx, m, size)
	}
	return err
}

func (s *sender) sendOnce(ctx context.Context, m *amqp.Message, size int) error {
	link, err := s.open(ctx)
	if err != nil {
		return err
	}
	if size > link.limit {
		return tooLarge(size, link.limit)
	}
	err = link.out.send(ctx, m, size)
	if brokenLink(err) || ofNoHub(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.link == link { // else somebody has given it up already
			s.link = nil
			link.conn.end(link.session)
		}
	}
	return err
}

// ofNoHub: the hub is gone, and the link of no use.
func ofNoHub(err error) bool { return err != nil && errors.Is(judge(err, sending).err, ErrNotFound) }

// brokenLink distinguishes an end of the link from an answer to what was sent on it.
func brokenLink(err error) bool {
	session, conn := (*amqp.SessionError)(nil), (*amqp.ConnError)(nil)
	return detached(err) || errors.As(err, &session) || errors.As(err, &conn)
}

// current is the link, unless it is known to be of no use.
func (s *sender) current() *senderLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil || !s.link.conn.alive() {
		return nil
	}
	return s.link
}

// open gives the link. While one opens it the others wait.
func (s *sender) open(ctx context.Context) (*senderLink, error) {
	if link := s.current(); link != nil {
		return link, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if link := s.current(); link != nil {
		return link, nil
	}
	link, err := s.attach(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		link.conn.end(link.session)
		return nil, ErrClosed
	}
	s.link = link
	return link, nil
}

func (s *sender) attach(ctx context.Context) (*senderLink, error) {
	conn, err := s.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.keep(ctx, s.client.at.audience(s.address)); err != nil {
		return nil, err
	}
	session, err := conn.session(ctx)
	if err != nil {
		return nil, err
	}
	desired := []string{capabilityGeo}
	if s.capability != "" {
		desired = append(desired, s.capability)
	}
	link, err := session.NewSender(patient{ctx}, s.address, &amqp.SenderOptions{
		SettlementMode:              amqp.SenderSettleModeMixed.Ptr(),
		RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
		DesiredCapabilities:         desired,
		Properties:                  s.properties,
	})
	if err == nil && s.check != nil {
		err = s.check(link.Properties())
	}
	if err != nil {
		conn.end(session)
		return nil, err
	}
	limit := usualLimit
	if said := link.MaxMessageSize(); said > 0 {
		limit = int(min(said, math.MaxInt32))
	}
	return &senderLink{conn: conn, session: session, out: newOutgoing(conn, link), limit: limit, reported: link.Properties()}, nil
}

// close ends the sender for good, and waits for the hub to know.
func (s *sender) close(ctx context.Context) error {
	s.mu.Lock()
	link := s.link
	s.link, s.closed = nil, true
	s.mu.Unlock()
	if link == nil {
		return nil
	}
	if err := link.session.Close(ctx); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// oneFrame is a size that fits into one frame: yards and Azure take frames of 64 KiB.
const oneFrame = 60 << 10

// outgoing sends messages on a link.
type outgoing struct {
	conn *connection
	link *amqp.Sender
	// turn is held by who writes: one at a time can. The library has a lock for it, which knows of
	// no contexts.
	turn chan struct{}
}

func newOutgoing(conn *connection, link *amqp.Sender) *outgoing {
	return &outgoing{conn: conn, link: link, turn: make(chan struct{}, 1)}
}

// errReleased: the hub did not take the message, and gave no reason.
var errReleased = errors.New("the hub did not take the events")

// send sends a message of some size and waits for the hub's answer.
func (o *outgoing) send(ctx context.Context, m *amqp.Message, size int) error {
	receipt, err := o.write(ctx, m, size)
	if err != nil {
		return err
	}
	state, err := receipt.Wait(ctx)
	if err != nil {
		return err
	}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if state.Error != nil {
			return state.Error
		}
	}
	return errReleased
}

// written is a message that is out, or why it is not.
type written struct {
	receipt amqp.SendReceipt
	err     error
}

// write waits until a message is out, or ctx ends: the library alone would wait for a network that
// takes nothing, whatever becomes of ctx.
func (o *outgoing) write(ctx context.Context, m *amqp.Message, size int) (amqp.SendReceipt, error) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return amqp.SendReceipt{}, context.Cause(ctx)
	}
	done := make(chan written, 1)
	if !o.conn.spawn(func() { done <- o.writeNow(ctx, m, size); <-o.turn }) {
		<-o.turn
		return amqp.SendReceipt{}, errLost
	}
	select {
	case w := <-done:
		return w.receipt, w.err
	case <-ctx.Done():
		return amqp.SendReceipt{}, context.Cause(ctx)
	}
}

// writeNow writes a message. One of several frames goes out whole, also when ctx has ended
// meanwhile: stopping in the middle would end the link, and with it the answers that others wait
// for.
func (o *outgoing) writeNow(ctx context.Context, m *amqp.Message, size int) written {
	if size > oneFrame {
		ctx = context.WithoutCancel(ctx)
	}
	receipt, err := o.link.SendWithReceipt(steady{patient{ctx}}, m, nil)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the library has another name for it where credit was waited for
	}
	return written{receipt, err}
}

// steady lets the AMQP library wait for credit no longer than a context lasts, and hides its end
// when a frame is to be written. The library would leave that frame out, though it is numbered, and
// then may wait for ever for a link that has ended.
type steady struct{ patient }

func (steady) Err() error { return nil }
