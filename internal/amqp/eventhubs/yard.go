package eventhubs

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/amqp"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/groups"
	"github.com/eventyard/eventyard/internal/hubs/groupwire"
	"github.com/eventyard/eventyard/processor"
)

const (
	// maxCalls is how many requests to $yard a connection may have under way, and the
	// credit of each of its links: a processor of a thousand partitions needs few.
	maxCalls = 64
	// maxCallBytes bounds what those measure together.
	maxCallBytes = 4 << 20
	// maxCallMessageBytes is the most that one may measure: its body and some properties.
	maxCallMessageBytes = groupwire.MaxRequestBytes + 8<<10
	// maxYardUntakenBytes bounds the replies of $yard that a client has not taken. While
	// there are so many, its requests are turned away.
	maxYardUntakenBytes = 2 << 20
	// smallReplyBytes is what a reply may measure that is kept although there is no room:
	// it may be the outcome of a write, and there are no more of them than calls.
	smallReplyBytes = 4 << 10
	// maxListings is how many requests for entries are handled at once: each reads all of a
	// group's, of which it returns a page. The others wait.
	maxListings = 2
)

var (
	errTooManyCalls = &amqp.Error{
		Condition:   condTooMany,
		Description: "Too many requests of this connection are under way, or replies that it has not taken. Nothing was done.",
	}
	errUntaken = &amqp.Error{
		Condition:   condTooMany,
		Description: "The reply was dropped because the client has not taken those before it.",
	}
)

// Groups is what stands behind $yard: the leases, checkpoints and entries of consumer
// groups, as processor.Store and processor.Watcher say; what changes them takes who asks, and
// decides whether that one may. To force a checkpoint is not among it: that is for another
// listener.
type Groups interface {
	Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error)
	ClaimBy(ctx context.Context, by groups.Caller, g processor.Group, leases []processor.Lease) ([]processor.Lease, error)
	Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error)
	BeginBy(ctx context.Context, by groups.Caller, g processor.Group, lease processor.Lease) (processor.Checkpoint, error)
	SaveBy(ctx context.Context, by groups.Caller, g processor.Group, lease processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error)
	Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error)
	PutBy(ctx context.Context, by groups.Caller, g processor.Group, f processor.Entry) (processor.Entry, error)
	RemoveBy(ctx context.Context, by groups.Caller, g processor.Group, f processor.Entry) error
	processor.Watcher
}

// yardNode is one connection's side of $yard (H9, P8). It differs from the other nodes that
// answer requests in that all requests are handled at once, each in a goroutine of its own, since
// one of them waits for something to happen and must not hold up the others. None waits
// in a queue: what is too much is turned away.
type yardNode struct {
	// exchange has the links of replies; no requests go through it.
	*exchange
	groups  Groups
	watches *watches
	// calls and their bytes are those under way. Guarded by the exchange's mutex.
	calls, bytes int
	// listings has an entry for each request for entries that is being handled.
	listings chan struct{}
}

// attachYard accepts a link to $yard, of which a connection may have several. Rights are checked
// with each request, because each names its hub; a client without any rights gets no link.
func (p *peer) attachYard(l *amqp.Link, a address) (amqp.Terminus, error) {
	if p.yard == nil {
		return amqp.Terminus{}, &broker.NotFoundError{Kind: broker.KindHub, Hub: wordYard, Name: wordYard}
	}
	if !p.rights.any() {
		return amqp.Terminus{}, p.entity(a).unauthorized(auth.Listen)
	}
	if !sends(l) {
		return p.yard.attachReplies(l), nil
	}
	s := &callSink{node: p.yard, link: l}
	s.ctx, s.end = context.WithCancelCause(p.conn.Context())
	return amqp.Terminus{Sink: s, MaxMessageBytes: maxCallMessageBytes, Credit: maxCalls}, nil
}

// callSink takes the requests of one link.
type callSink struct {
	node *yardNode
	link *amqp.Link
	// ctx ends with the link; it is that of all its requests.
	ctx context.Context
	end context.CancelCauseFunc
}

// Deliver takes a request.
func (s *callSink) Deliver(d *amqp.Delivery) {
	n := s.node
	q, body, err := parseCall(d.Payload)
	if err != nil {
		d.Reject(n.peer.explain(n.peer.entity(address{node: nodeYard}), err))
		return
	}
	q.session = s.link.Session()
	e := &errand{request: q, delivery: d}
	if !n.begin(e) {
		n.turnAway(e, address{node: nodeYard}, errTooManyCalls)
		return
	}
	n.peer.work.Go(func() {
		a := n.answer(s.ctx, q, body)
		d.Accept()
		n.send(e, a)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.calls--
		n.bytes -= e.cost()
	})
}

// Closed ends the requests that are under way: nobody waits for them any more.
func (s *callSink) Closed() { s.end(amqp.ErrLinkEnded) }

// parseCall takes a request apart. The result shares nothing with it. A body that is not a single
// data section counts as none, which is no JSON.
func parseCall(payload []byte) (*request, []byte, error) {
	q, err := parseRequest(payload)
	body, _ := message.Body(payload)
	return q, bytes.Clone(body), err
}

// begin counts a request, unless there are too many.
func (n *yardNode) begin(e *errand) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.to = n.routeLocked(e.request)
	if n.calls >= maxCalls || n.bytes+e.cost() > maxCallBytes || !n.roomLocked(e.to) {
		return false
	}
	n.calls++
	n.bytes += e.cost()
	return true
}

// send queues a reply. A large one that there is no room for is dropped: the client gets a
// short error instead, and repeats the request when it has taken what is there.
func (n *yardNode) send(e *errand, a reply) {
	message := a.append(nil, e.id)
	if n.reply(e, message, len(message) <= smallReplyBytes) {
		return
	}
	dropped := n.peer.failure(n.peer.entity(address{node: nodeYard}), errUntaken)
	dropped.status = groupwire.StatusFailed // it may have been a write
	if !n.reply(e, dropped.append(nil, e.id), true) {
		n.peer.log.Debug("reply has nowhere to go", "replyTo", shown(e.replyTo), "operation", shown(e.operation))
	}
}

// answer handles a request, as long as there is the right to it.
func (n *yardNode) answer(ctx context.Context, q *request, body []byte) reply {
	p := n.peer
	at := p.entity(address{node: nodeYard, hub: strings.Trim(q.name, "/")})
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A token that is good for one group reaches what is kept of that group.
	of := address{node: nodeHub, hub: at.hub, group: groupwire.GroupOf(body)}.scope()
	g := &guard{entity: of, need: auth.Listen, end: end}
	if !p.rights.watch(g) {
		return p.failure(at, at.unauthorized(auth.Listen))
	}
	defer p.rights.unwatch(g)
	data, err := n.perform(ctx, at, q, body, p.rights.allow(of, auth.Manage))
	if err == nil {
		return reply{status: groupwire.StatusOK, description: "OK", data: data}
	}
	if cause := context.Cause(ctx); cause != nil { // which may be that the rights have ended
		err = fmt.Errorf("%w: %v", cause, err)
	}
	a := p.failure(at, err)
	if a.condition == condCancelled { // elsewhere clients take it for a reason to do it again
		a.status = groupwire.StatusFailed
	}
	return a
}

// perform does what is asked for and gives the body of the reply.
func (n *yardNode) perform(ctx context.Context, at entity, q *request, body []byte, manages bool) ([]byte, error) {
	op, ok := operations[q.operation]
	if !ok {
		return nil, &amqp.Error{Condition: condArgument, Description: fmt.Sprintf("%s does not know the operation '%s': it knows %s.",
			wordYard, shown(q.operation), strings.Join(groupwire.Operations(), ", "))}
	}
	if at.hub == "" {
		return nil, &amqp.Error{Condition: condArgument, Description: "The request names no hub."}
	}
	hub, err := n.peer.handler.cfg.Broker.LookUp(ctx, at.hub)
	if err != nil {
		return nil, err
	}
	secret, lasts, err := groupwire.ReadSecret(q.secret, q.lasts)
	if err != nil {
		return nil, err
	}
	by := groups.Caller{Operator: manages, Hash: groups.HashOf(secret), Lasts: lasts}
	answer, err := op.do(ctx, n, by, hub.Name, body)
	if err != nil {
		return nil, err
	}
	data, err := groupwire.EncodeReply(answer)
	if err != nil { // it was done, and the outcome is too large for a reply
		return nil, fmt.Errorf("tell the outcome of %s: %v", q.operation, err)
	}
	return data, nil
}
