package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"

	"github.com/Azure/go-amqp"
)

// replyCredit is how many replies may be under way.
const replyCredit = 1000

// node is one of the addresses that answer requests. Its pair of links is opened when it is
// first needed.
type node struct {
	// turn is held by who opens the pair; it guards exchange.
	turn     chan struct{}
	exchange *exchange
}

// exchange is a pair of links, one for requests and one for replies. Any number of requests
// may be under way: a reply names its request.
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

// ask sends a request to a node and waits for the reply. An answer that is no success is
// a *CallError. An *unsentError came before the request was sent.
func (c *connection) ask(ctx context.Context, address string, request *amqp.Message) (reply, error) {
	x, err := c.exchangeWith(ctx, address)
	if err != nil {
		return reply{}, &unsentError{err}
	}
	r, err := x.call(ctx, request)
	if err != nil {
		return reply{}, err
	}
	return r, r.err()
}

// unsentError: the request cannot have reached the node.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

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
	err = x.attach(ctx, address)
	x.out = newOutgoing(c, x.sender)
	if err == nil && !c.spawn(x.route) {
		err = errLost
	}
	if err != nil {
		c.end(session)
		return nil, err
	}
	return x, nil
}

func (x *exchange) attach(ctx context.Context, address string) (err error) {
	if x.sender, err = x.session.NewSender(patient{ctx}, address, nil); err != nil {
		return err
	}
	x.replies, err = x.session.NewReceiver(patient{ctx}, address, &amqp.ReceiverOptions{
		TargetAddress: x.replyTo, Credit: replyCredit,
		SettlementMode:            amqp.ReceiverSettleModeFirst.Ptr(),
		RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	return err
}

// route gives replies to those who wait for them, until the link ends.
func (x *exchange) route() {
	for {
		m, err := x.replies.Receive(context.Background(), nil)
		if err != nil {
			x.leave(err)
			return
		}
		r, err := parseReply(rawBytes(m))
		if err != nil {
			x.leave(err) // whose it was cannot be known
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

// leave ends the pair when a link of it has ended. What is left of it has to be gone before another
// is opened: some nodes let in no more than one.
func (x *exchange) leave(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	_ = x.session.Close(ctx)
	x.end(err)
}

// end tells all who wait that there will be no reply.
func (x *exchange) end(err error) {
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

// wait begins to wait for the reply to a request, which it numbers.
func (x *exchange) wait() (id string, to chan reply, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting == nil {
		return "", nil, x.err
	}
	x.last++
	id, to = strconv.FormatUint(x.last, 10), make(chan reply, 1)
	x.waiting[id] = to
	return id, to, nil
}

// call sends a request and waits for its reply, whatever it says.
func (x *exchange) call(ctx context.Context, request *amqp.Message) (reply, error) {
	id, to, err := x.wait()
	if err != nil {
		return reply{}, &unsentError{err}
	}
	request.Properties = &amqp.MessageProperties{MessageID: id, ReplyTo: &x.replyTo}
	if err := x.send(ctx, request); err != nil {
		x.take(id)
		return reply{}, err
	}
	select {
	case r, ok := <-to:
		if !ok {
			return reply{}, x.why()
		}
		return r, nil
	case <-ctx.Done():
		x.take(id)
		return reply{}, context.Cause(ctx)
	}
}

// send sends a request and waits until the node has taken it.
func (x *exchange) send(ctx context.Context, request *amqp.Message) error {
	err := x.out.send(ctx, request, len(request.GetData()))
	if brokenLink(err) {
		x.giveUp()
	}
	return err
}

// giveUp ends the session; route notices.
func (x *exchange) giveUp() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = x.session.Close(gone) // begins it and does not wait
}

func (x *exchange) why() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		return errors.New("the hub sent no reply")
	}
	return x.err
}
