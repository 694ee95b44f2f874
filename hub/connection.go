package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

// closeWait is how long a goodbye may take on a network that does not answer.
const closeWait = 3 * time.Second

// connection is one network connection, with all that belongs to it and ends with it.
type connection struct {
	client *Client
	amqp   *amqp.Conn
	raw    *rawConn
	grants grants

	// tasks are the goroutines that close waits for.
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool             // guarded by mu
	nodes  map[string]*node // guarded by mu; by address
}

func (c *Client) openConnection(ctx context.Context) (*connection, error) {
	stream, err := c.reach(ctx)
	if err != nil {
		return nil, err
	}
	raw := newRawConn(stream)
	// It closes the stream if it fails.
	conn, err := amqp.NewConn(ctx, raw, &amqp.ConnOptions{
		SASLType:    amqp.SASLTypeAnonymous(), // the token says who we are
		ContainerID: c.cfg.Name + "-" + rand.Text(),
		HostName:    c.at.host,
		MaxSessions: 65535,
		Properties: map[string]any{
			"product": "eventyard", "platform": runtime.GOOS, "framework": runtime.Version(), "user-agent": c.cfg.Name,
		},
	})
	if err != nil {
		return nil, err
	}
	opened := &connection{client: c, amqp: conn, raw: raw, nodes: make(map[string]*node)}
	opened.grants.init()
	opened.spawn(opened.renew)
	return opened, nil
}

// alive tells whether it can still be used, as far as is known.
func (c *connection) alive() bool {
	select {
	case <-c.amqp.Done():
		return false
	default:
		return true
	}
}

// close says goodbye and waits until nothing of the connection is left. Safe twice.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	force := time.AfterFunc(closeWait, func() { _ = c.raw.Close() })
	_ = c.amqp.Close() // why it ended was told to those who used it
	force.Stop()
	c.tasks.Wait()
}

// spawn runs something that ends when the connection does, unless that has ended already.
func (c *connection) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks.Go(f)
	return true
}

// session begins one. Every link has its own, which ends with it: so one that is broken
// takes no other along, and what a link that was given up still gets is nobody's concern.
//
// The library is not told of ctx: to a session that was not begun, since its context had ended, it
// would later say goodbye, and the hub then ends the connection, with everybody's links.
func (c *connection) session(ctx context.Context) (*amqp.Session, error) {
	to := make(chan begun)
	if !c.spawn(func() { c.begin(ctx, to) }) {
		return nil, errLost
	}
	select {
	case b := <-to:
		return b.session, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begun is a session, or why there is none.
type begun struct {
	session *amqp.Session
	err     error
}

// begin begins a session for somebody, and ends it if he has gone meanwhile.
func (c *connection) begin(ctx context.Context, to chan<- begun) {
	s, err := c.amqp.NewSession(context.Background(), nil)
	select {
	case to <- begun{s, err}:
	case <-ctx.Done():
		if err == nil {
			c.end(s)
		}
	}
}

// errLost: the connection has ended, and another takes its place.
var errLost = errors.New("the connection was lost")

// end ends a session, and with it its links, without waiting.
func (c *connection) end(s *amqp.Session) {
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		_ = s.Close(ctx)
	})
}

// patient hides a context's deadline from the AMQP library, though not that it has passed.
// The library would take it for the deadline of writing to the network, and close the
// connection, with everybody's links, when one caller has no time to wait.
type patient struct{ context.Context }

func (patient) Deadline() (time.Time, bool) { return time.Time{}, false }
