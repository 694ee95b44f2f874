package eventhubs

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/sleep"
)

const (
	// maxRequestBytes is the most a request may measure; the largest holds a token.
	maxRequestBytes = 64 << 10
	// requestCredit is what Event Hubs gives.
	requestCredit = 100
	// maxQueuedBytes bounds the requests to a node that nobody has handled yet: what a
	// client has credit for, if its tokens are not very long.
	maxQueuedBytes = 1 << 20
	// maxLateBytes is the most that is kept of a request whose refusal waits.
	maxLateBytes = 4 << 10
	// maxUntakenBytes bounds the replies that the client has not taken: while there are so
	// many, no more of its requests are handled.
	maxUntakenBytes = 256 << 10
	// strangerUntakenBytes is the same for strangers.
	strangerUntakenBytes = 32 << 10
	// exchangeOverheadBytes is what a request or a reply counts besides its own bytes.
	exchangeOverheadBytes = 512
	// maxLate is how many refusals of a connection wait for their time beside each other; beyond
	// that, whoever shows so many bad tokens waits with everything that it asks.
	maxLate = 16
)

var errTooManyRequests = &amqp.Error{
	Condition: condBusy,
	Description: "Too many requests are waiting to be handled: more than there was credit for, or very large ones. " +
		"Please wait and try again.",
}

// exchange is one connection's side of a node that answers requests: $cbs, $management.
// Requests come in on some links, replies go out on others.
//
// The requests of a link are handled one after the other, in a goroutine that lives while there are
// any; so replies are in order, and neither a slow answer nor a client that takes no replies holds
// up what else is read from the connection. Only the refusal of a bad token that has to wait holds
// up nothing: a good token behind it is accepted at once. A request is settled when it has been handled: so the
// link's credit bounds how many wait, and a client may have any number of them to ask.
type exchange struct {
	peer   *peer
	handle func(context.Context, *request) reply
	// maxUntaken bounds the bytes of replies that the client has not taken.
	maxUntaken int

	mu sync.Mutex
	// All of these are guarded by mu, and so are the queues of the links.
	requests []*requestSink
	replies  []*replySource
	// queued and untaken are the bytes of all queues of requests and of replies.
	queued, untaken int
}

// requestSink takes the requests of one link.
type requestSink struct {
	exchange *exchange
	link     *amqp.Link
	// queue is what has not been handled; working: somebody is at it. These three are
	// guarded by the exchange's mutex.
	queue   []*errand
	working bool
	closed  bool
	// room has room for one word that there may be some for a reply.
	room chan struct{}
}

// errand is a request on its way to its reply.
type errand struct {
	*request
	delivery *amqp.Delivery
	// to is where the reply goes; nil: there was no such link when the request came. It is
	// found out then, because later another may have its name, or its session's number.
	to *replySource
}

func (e *errand) cost() int { return e.size + exchangeOverheadBytes }

// attach accepts a link, for requests or for replies.
func (x *exchange) attach(l *amqp.Link) amqp.Terminus {
	if !sends(l) {
		return x.attachReplies(l)
	}
	s := &requestSink{exchange: x, link: l, room: make(chan struct{}, 1)}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.requests = append(x.requests, s)
	return amqp.Terminus{Sink: s, MaxMessageBytes: maxRequestBytes, Credit: requestCredit}
}

// Deliver queues a request, unless too many wait already.
func (s *requestSink) Deliver(d *amqp.Delivery) {
	x := s.exchange
	q, err := parseRequest(d.Payload)
	if err != nil {
		d.Reject(x.peer.explain(x.peer.entity(address{}), err))
		return
	}
	q.session = s.link.Session()
	e := &errand{request: q, delivery: d}
	claimed := x.peer.conn.Claim(e.cost())
	x.mu.Lock()
	e.to = x.routeLocked(q)
	full := !claimed || x.queued > 0 && x.queued+e.cost() > maxQueuedBytes
	if !full {
		x.queued += e.cost()
		s.queue = append(s.queue, e)
		if !s.working {
			s.working = true
			x.peer.work.Go(s.drain)
		}
	}
	x.mu.Unlock()
	if full {
		if claimed {
			x.peer.conn.Free(e.cost())
		}
		x.turnAway(e, address{}, errTooManyRequests)
	}
}

// turnAway refuses a request that there is no room for: by a reply, because a client that sends
// settled gets nothing else, or by rejecting it where the client takes no replies.
func (x *exchange) turnAway(e *errand, node address, why error) {
	busy := x.peer.failure(x.peer.entity(node), why)
	if x.reply(e, busy.append(nil, e.id), false) {
		e.delivery.Accept()
		return
	}
	e.delivery.Reject(&amqp.Error{Condition: busy.condition, Description: busy.description})
}

// drain handles requests until there are none.
func (s *requestSink) drain() {
	x := s.exchange
	ctx := x.peer.conn.Context()
	for e := s.pop(); e != nil; e = s.pop() {
		if !s.awaitRoom(ctx, e) {
			return // the connection has ended
		}
		if a := x.handle(ctx, e.request); a.after == 0 {
			x.answer(e, a)
		} else if !x.answerLate(ctx, e, a) {
			return
		}
	}
}

func (x *exchange) answer(e *errand, a reply) {
	// One client waits for both, and all of them expect to hear this first.
	e.delivery.Accept()
	if !x.reply(e, a.append(nil, e.id), true) {
		x.peer.log.Debug("reply has nowhere to go", "replyTo", shown(e.replyTo), "operation", shown(e.operation))
	}
}

// answerLate answers when it is time, while the caller goes on; false: the connection has ended. Of
// the request it keeps what the answer needs. If that is much, the caller waits: what is held here
// counts nowhere.
func (x *exchange) answerLate(ctx context.Context, e *errand, a reply) bool {
	if len(e.id)+len(e.replyTo)+len(e.operation) > maxLateBytes {
		if sleep.For(ctx, a.after, nil) != nil {
			return false
		}
		x.answer(e, a)
		return true
	}
	e.delivery.Payload = nil
	e.request = &request{
		id: bytes.Clone(e.id), replyTo: strings.Clone(e.replyTo), session: e.session, operation: strings.Clone(e.operation),
	}
	select {
	case x.peer.lateRefusals <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	x.peer.work.Go(func() {
		defer func() { <-x.peer.lateRefusals }()
		if sleep.For(ctx, a.after, nil) == nil {
			x.answer(e, a)
		}
	})
	return true
}

func (s *requestSink) pop() *errand {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue, s.working = nil, false
		return nil
	}
	e := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	x.queued -= e.cost()
	x.peer.conn.Free(e.cost())
	if e.to == nil && !s.closed {
		e.to = x.routeLocked(e.request)
	}
	return e
}

// awaitRoom waits until there is room for a reply, or no need of any.
func (s *requestSink) awaitRoom(ctx context.Context, e *errand) bool {
	for {
		s.exchange.mu.Lock()
		ready := s.closed || s.exchange.roomLocked(e.to)
		s.exchange.mu.Unlock()
		if ready {
			return true
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return false
		}
	}
}

// roomLocked reports whether there is room for a reply. A link all of whose replies were
// taken is not held up by the others, within reason.
func (x *exchange) roomLocked(to *replySource) bool {
	most := x.maxUntaken
	if !x.peer.conn.Known() {
		most = min(most, strangerUntakenBytes)
	}
	return to == nil || to.closed || x.untaken < most ||
		len(to.queue) == 0 && x.untaken < 2*most
}

// Closed forgets the requests that nobody has looked at yet.
func (s *requestSink) Closed() {
	x := s.exchange
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range s.queue {
		x.queued -= e.cost()
		x.peer.conn.Free(e.cost())
	}
	s.queue, s.closed = nil, true
	s.poke()
	x.requests = slices.DeleteFunc(x.requests, func(other *requestSink) bool { return other == s })
}

// poke wakes the goroutine that waits for room.
func (s *requestSink) poke() {
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// reply queues a reply on the link that the request asked for. It fails where there is
// none, or none any more: nobody can be notified then. Unless it is expected it also fails
// where there is no room.
func (x *exchange) reply(e *errand, message []byte, expected bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := e.to
	if s == nil || s.closed || !expected && !x.roomLocked(s) {
		return false
	}
	s.queue = append(s.queue, message)
	x.untaken += len(message) + exchangeOverheadBytes
	s.link.Wake()
	return true
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

// freeLocked gives back the room of replies, and lets requests look for it.
func (x *exchange) freeLocked(messages ...[]byte) {
	for _, message := range messages {
		x.untaken -= len(message) + exchangeOverheadBytes
	}
	for _, s := range x.requests {
		s.poke()
	}
}
