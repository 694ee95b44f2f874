package eventhubs

import (
	"context"
	"slices"

	"github.com/eventyard/eventyard/internal/amqp"
)

// replySource sends the replies of one link.
type replySource struct {
	exchange *exchange
	link     *amqp.Link
	// target is the address by which requests may ask for this link.
	target string
	// queue and closed are guarded by the exchange's mutex.
	queue  [][]byte
	closed bool
}

// attachReplies accepts a link for replies.
func (x *exchange) attachReplies(l *amqp.Link) amqp.Terminus {
	s := &replySource{exchange: x, link: l}
	if target := l.Request().Target; target != nil {
		s.target = target.Address.Value
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replies = append(x.replies, s)
	return amqp.Terminus{Source: s, OnDemand: true}
}

// Run sends the replies that there are, in the order of their requests.
func (s *replySource) Run(ctx context.Context, l *amqp.Link) error {
	for {
		message := s.head()
		if message == nil {
			return nil
		}
		_, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, message...) })
		if err != nil {
			return nil // the link has ended, and all that is queued with it
		}
		s.sent()
	}
}

// head gives the first reply, which stays in the queue until it is sent.
func (s *replySource) head() []byte {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0]
}

func (s *replySource) sent() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		return // closed meanwhile
	}
	x.freeLocked(s.queue[0])
	s.queue[0] = nil
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
}

// Closed forgets the replies that were not sent.
func (s *replySource) Closed() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	s.closed = true
	x.freeLocked(s.queue...) // also for requests that wait for room on this link
	s.queue = nil
	x.replies = slices.DeleteFunc(x.replies, func(other *replySource) bool { return other == s })
}
