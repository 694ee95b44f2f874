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
	// turn is held by who opens the link.
	turn chan struct{}

	mu   sync.Mutex
	link *senderLink // guarded by mu; nil if there is none
}

// senderLink is a link on which events can be sent.
type senderLink struct {
	conn    *connection
	session *amqp.Session
	out     *outgoing
	// limit is the most that a message may measure.
	limit int
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
		s = &sender{client: c, address: address, turn: make(chan struct{}, 1)}
		c.senders[address] = s
	}
	return s, nil
}

// send sends a message once. Where more than one attempt is allowed, a link that was found broken is
// replaced at once: it may have been so for long.
func (s *sender) send(ctx context.Context, m *amqp.Message, size int) error {
	err := s.sendOnce(ctx, m, size)
	if err != nil && ctx.Err() == nil && brokenLink(err) && s.client.cfg.Retry.Attempts > 1 && judge(err, sending).passing {
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
	if brokenLink(err) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = link
	return link, nil
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
	link, err := session.NewSender(patient{ctx}, s.address, &amqp.SenderOptions{
		SettlementMode:              amqp.SenderSettleModeMixed.Ptr(),
		RequestedReceiverSettleMode: amqp.ReceiverSettleModeFirst.Ptr(),
		DesiredCapabilities:         []string{capabilityGeo},
	})
	if err != nil {
		conn.end(session)
		return nil, err
	}
	return &senderLink{conn: conn, session: session, out: newOutgoing(conn, link), limit: limitOf(link.MaxMessageSize())}, nil
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
