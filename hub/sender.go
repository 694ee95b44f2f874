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

// capabilityGeo tells that we do not take offsets for numbers.
const capabilityGeo = "com.microsoft:georeplication"

// sender sends to one address. Its link is opened when it is first needed, kept, and opened
// anew when it broke. Any number of goroutines send on it at once.
type sender struct {
	client  *Client
	address string
	// capability and properties are asked of the hub when a link is opened, beside what all ask, and check looks at what it
	// answers. Empty and nil where there is nothing to ask.
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
	// told are the properties that the hub has answered with.
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

// send sends a message once. Where more than one attempt is allowed, a link that was found broken is
// replaced at once: it may have been so for long.
func (s *sender) send(ctx context.Context, m *amqp.Message, size int) error {
	stood := s.current() != nil
	err := s.sendOnce(ctx, m, size)
	if err != nil && ctx.Err() == nil && s.client.cfg.Retry.Attempts > 1 && outdated(err, stood) {
		err = s.sendOnce(ctx, m, size)
	}
	return err
}

// outdated tells that another link may fare better at once. One that stood may be of a hub that was deleted, and there may
// be another of its name.
func outdated(err error, stood bool) bool {
	return brokenLink(err) && judge(err, sending).passing || stood && ofNoHub(err)
}

// ofNoHub: the hub is gone, and the link of no use.
func ofNoHub(err error) bool { return err != nil && errors.Is(judge(err, sending).err, ErrNotFound) }

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
		s.drop(link)
	}
	return err
}

// brokenLink tells an end of the link from an answer to what was sent on it.
func brokenLink(err error) bool {
	session, conn := (*amqp.SessionError)(nil), (*amqp.ConnError)(nil)
	return detached(err) || errors.As(err, &session) || errors.As(err, &conn)
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
	if !s.adopt(link) {
		return nil, ErrClosed
	}
	return link, nil
}

// adopt makes a link the sender's; false if that was closed meanwhile.
func (s *sender) adopt(link *senderLink) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		link.conn.end(link.session)
		return false
	}
	s.link = link
	return true
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
	link, err := session.NewSender(patient{ctx}, s.address, s.options())
	if err == nil && s.check != nil {
		err = s.check(link.Properties())
	}
	if err != nil {
		conn.end(session)
		return nil, err
	}
	return &senderLink{
		conn: conn, session: session, out: newOutgoing(conn, link),
		limit: limitOf(link.MaxMessageSize()), reported: link.Properties(),
	}, nil
}

func (s *sender) options() *amqp.SenderOptions {
	desired := []string{capabilityGeo}
	if s.capability != "" {
		desired = append(desired, s.capability)
	}
	return &amqp.SenderOptions{
		SettlementMode:              amqp.SenderSettleModeMixed.Ptr(),
		RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
		DesiredCapabilities:         desired,
		Properties:                  s.properties,
	}
}

func limitOf(said uint64) int {
	if said == 0 {
		return usualLimit
	}
	return int(min(said, math.MaxInt32))
}

// drop gives up a link, unless somebody else has.
func (s *sender) drop(link *senderLink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == link {
		s.link = nil
		link.conn.end(link.session)
	}
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
