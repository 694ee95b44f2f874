package hub

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"

	"github.com/Azure/go-amqp"
)

// replyCredit is how many replies may be under way.
const replyCredit = 1000

// node is one of the addresses that answer requests. Its pair of links is opened when it is first
// needed.
type node struct {
	// turn is held by who opens the pair; it guards exchange.
	turn     chan struct{}
	exchange *exchange
}

// exchange is a pair of links, one for requests and one for replies. Any number of requests may be
// under way: a reply names its request.
type exchange struct {
	session *amqp.Session
	sender  *amqp.Sender
	out     *outgoing // by sender
	replies *amqp.Receiver
	replyTo string

	mu      sync.Mutex
	last    uint64                // guarded by mu; the last request's number
	waiting map[string]chan reply // guarded by mu; by message id; nil once it is over
	err     error                 // guarded by mu; why it is over
}

// unsentError: the request cannot have reached the node.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// ask sends a request to a node and waits for the reply. A reply that is no success is a
// *CallError. An *unsentError came before the request was sent.
func (c *connection) ask(ctx context.Context, address string, request *amqp.Message) (reply, error) {
	x, err := c.exchangeWith(ctx, address)
	if err != nil {
		return reply{}, &unsentError{err}
	}
	x.mu.Lock()
	if x.waiting == nil {
		defer x.mu.Unlock()
		return reply{}, &unsentError{x.err}
	}
	x.last++
	id, to := strconv.FormatUint(x.last, 10), make(chan reply, 1)
	x.waiting[id] = to
	x.mu.Unlock()

	request.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: &x.replyTo}
	if err := x.out.send(ctx, request, len(request.GetData())); err != nil {
		x.take(id)
		if brokenLink(err) {
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			_ = x.session.Close(gone) // begins to end it and does not wait; route notices
		}
		return reply{}, err
	}
	select {
	case r, ok := <-to:
		if !ok {
			x.mu.Lock()
			defer x.mu.Unlock()
			return reply{}, x.err
		}
		return r, r.err()
	case <-ctx.Done():
		x.take(id)
		return reply{}, context.Cause(ctx)
	}
}

// exchangeWith gives the pair of a node.
func (c *connection) exchangeWith(ctx context.Context, address string) (*exchange, error) {
	n := c.node(address)
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if n.exchange != nil && !n.exchange.over() {
		return n.exchange, nil
	}
	x, err := c.openExchange(ctx, address)
	if err == nil {
		n.exchange = x
	}
	return x, err
}

func (c *connection) node(address string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[address]
	if n == nil {
		n = &node{turn: make(chan struct{}, 1)}
		c.nodes[address] = n
	}
	return n
}

func (c *connection) openExchange(ctx context.Context, address string) (*exchange, error) {
	session, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	x := &exchange{session: session, replyTo: "reply-" + rand.Text(), waiting: make(map[string]chan reply)}
	if x.sender, err = session.NewSender(patient{ctx}, address, nil); err == nil {
		x.out = newOutgoing(c, x.sender)
		x.replies, err = session.NewReceiver(patient{ctx}, address, &amqp.ReceiverOptions{
			TargetAddress: x.replyTo, Credit: replyCredit,
			SettlementMode:            amqp.ReceiverSettleModeFirst.Ptr(),
			RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
		})
	}
	if err == nil && !c.spawn(x.route) {
		err = errLost
	}
	if err != nil {
		c.end(session)
		return nil, err
	}
	return x, nil
}

// route gives replies to those who wait for them, until the link ends.
func (x *exchange) route() {
	for {
		m, err := x.replies.Receive(context.Background(), nil)
		var r reply
		if err == nil {
			r, err = parseReply(rawBytes(m)) // of one that cannot be read the request is not known
		}
		if err != nil {
			x.end(err)
			return
		}
		if to := x.take(r.id); to != nil {
			to <- r // has room for it
		}
	}
}

func (x *exchange) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waiting == nil
}

// end lets all who wait know that there will be no reply. What is left of the pair has to be gone
// before another is opened: some nodes accept no more than one.
func (x *exchange) end(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = x.session.Close(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, to := range x.waiting {
		close(to)
	}
	x.waiting, x.err = nil, err
}

// take gives who waits for a reply, nil if nobody does any more.
func (x *exchange) take(id string) chan reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	to := x.waiting[id]
	delete(x.waiting, id)
	return to
}
