package eventhubs

import (
	"context"
	"slices"
	"sync"

	"github.com/eventyard/eventyard/internal/amqp"
)

const (
	// maxRequestBytes is the most a request may measure; the largest holds a token.
	maxRequestBytes = 64 << 10
	// requestCredit is what Event Hubs gives.
	requestCredit = 100
	// maxPending and maxPendingBytes bound the requests of a node whose replies have not
	// gone out: a client that takes no replies may not have us remember them for ever.
	maxPending      = 128
	maxPendingBytes = 256 << 10
)

var errTooManyRequests = &amqp.Error{
	Condition:   condLimit,
	Description: "Too many requests are waiting for their replies to be taken.",
}

// exchange is one connection's side of a node that answers requests: $cbs, $management.
// Requests come in on some links, replies go out on others.
//
// The requests of a link are handled one after the other, in a goroutine that lives
// while there are any; so replies are in order, and neither a slow answer nor a client
// that takes no replies holds up what else is read from the connection.
type exchange struct {
	peer   *peer
	handle func(context.Context, *request) reply

	mu sync.Mutex
	// All of these are guarded by mu, and so are the queues of the links.
	requests     []*requestSink
	replies      []*replySource
	pending      int
	pendingBytes int
}

// requestSink takes the requests of one link.
type requestSink struct {
	exchange *exchange
	link     *amqp.Link
	// queue is what has not been handled; working: somebody is at it. Guarded by the
	// exchange's mutex.
	queue   []*request
	working bool
}

// outgoing is a reply on its way, and what it counts among the pending.
type outgoing struct {
	message []byte
	size    int
}

// replySource sends the replies of one link.
type replySource struct {
	exchange *exchange
	link     *amqp.Link
	// target is the address by which requests may ask for this link.
	target string
	// queue is guarded by the exchange's mutex. wake has room for one word that it is not
	// empty any more.
	queue []outgoing
	wake  chan struct{}
}

// attachRequests accepts a link for requests.
func (x *exchange) attachRequests(l *amqp.Link) amqp.Terminus {
	s := &requestSink{exchange: x, link: l}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.requests = append(x.requests, s)
	return amqp.Terminus{Sink: s, MaxMessageBytes: maxRequestBytes, Credit: requestCredit}
}

// attachReplies accepts a link for replies.
func (x *exchange) attachReplies(l *amqp.Link) amqp.Terminus {
	s := &replySource{exchange: x, link: l, wake: make(chan struct{}, 1)}
	if target := l.Request().Target; target != nil {
		s.target = target.Address.Value
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replies = append(x.replies, s)
	return amqp.Terminus{Source: s}
}

// open tells how many links there are of each kind.
func (x *exchange) open() (requests, replies int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.requests), len(x.replies)
}

// Deliver takes a request. It is settled at once: that it was taken is all that is said
// by that, and one client waits for it before it looks for the reply.
func (s *requestSink) Deliver(d *amqp.Delivery) {
	q, err := parseRequest(d.Payload)
	if err != nil {
		d.Reject(s.exchange.peer.explain(s.exchange.peer.place(address{}), err))
		return
	}
	q.session = s.link.Session()
	if !s.push(q) {
		d.Reject(errTooManyRequests)
		return
	}
	d.Accept()
}

// push queues a request, unless there are too many.
func (s *requestSink) push(q *request) bool {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending >= maxPending || x.pending > 0 && x.pendingBytes+q.size > maxPendingBytes {
		return false
	}
	x.pending++
	x.pendingBytes += q.size
	s.queue = append(s.queue, q)
	if !s.working {
		s.working = true
		x.peer.work.Go(s.drain)
	}
	return true
}

// drain handles requests until there are none.
func (s *requestSink) drain() {
	x := s.exchange
	for q := s.pop(); q != nil; q = s.pop() {
		a := x.handle(x.peer.conn.Context(), q)
		x.send(q, a.append(nil, q.id))
	}
}

func (s *requestSink) pop() *request {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue, s.working = nil, false
		return nil
	}
	q := s.queue[0]
	s.queue = s.queue[1:]
	return q
}

// Closed forgets the requests that nobody has looked at yet.
func (s *requestSink) Closed() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range s.queue {
		x.doneLocked(q.size)
	}
	s.queue = nil
	x.requests = slices.DeleteFunc(x.requests, func(other *requestSink) bool { return other == s })
}

// send queues a reply on the link that the request asked for. Where there is none,
// nobody can be told.
func (x *exchange) send(q *request, message []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.routeLocked(q)
	if s == nil {
		x.doneLocked(q.size)
		x.peer.log.Debug("reply has nowhere to go", "replyTo", shown(q.replyTo), "operation", shown(q.operation))
		return
	}
	s.queue = append(s.queue, outgoing{message: message, size: q.size})
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// routeLocked finds the link for a reply. Clients differ in how they say it: by the
// link's target, by its name, or not at all, which means the request's own session.
func (x *exchange) routeLocked(q *request) *replySource {
	for _, fits := range []func(*replySource) bool{
		func(s *replySource) bool { return q.replyTo != "" && s.target == q.replyTo },
		func(s *replySource) bool { return q.replyTo != "" && s.link.Request().Name == q.replyTo },
		func(s *replySource) bool { return s.link.Session() == q.session },
	} {
		if at := slices.IndexFunc(x.replies, fits); at >= 0 {
			return x.replies[at]
		}
	}
	return nil
}

// doneLocked is for each request that nothing is left of.
func (x *exchange) doneLocked(size int) {
	x.pending--
	x.pendingBytes -= size
}

// Run sends replies in the order of their requests.
func (s *replySource) Run(ctx context.Context, l *amqp.Link) error {
	for {
		message, ok := s.next(ctx)
		if !ok {
			return nil
		}
		_, err := l.Send(ctx, 1, func(dst []byte, _ int) []byte { return append(dst, message...) })
		if err != nil {
			return nil // the link has ended, and all that is queued with it
		}
		s.sent()
	}
}

// next waits for a reply. It stays in the queue until it is sent.
func (s *replySource) next(ctx context.Context) ([]byte, bool) {
	for {
		if message := s.head(); message != nil {
			return message, true
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (s *replySource) head() []byte {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0].message
}

func (s *replySource) sent() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		return // closed meanwhile
	}
	x.doneLocked(s.queue[0].size)
	s.queue[0] = outgoing{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
}

// Closed forgets the replies that were not sent.
func (s *replySource) Closed() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, o := range s.queue {
		x.doneLocked(o.size)
	}
	s.queue = nil
	x.replies = slices.DeleteFunc(x.replies, func(other *replySource) bool { return other == s })
}
