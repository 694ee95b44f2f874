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

// errLost: the connection has ended, and another replaces it.
var errLost = errors.New("the connection was lost")

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
	opened := &connection{
		client: c, amqp: conn, raw: raw, nodes: make(map[string]*node),
		grants: grants{wake: make(chan struct{}, 1), held: make(map[string]*grant)},
	}
	opened.spawn(opened.renew)
	return opened, nil
}

// alive reports whether it can still be used, as far as is known.
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
	_ = c.amqp.Close() // those who used it have the reason
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

// session begins one. Every link has its own, which ends with it: a broken one takes no other
// along, and what still arrives for a link that was given up is nobody's concern.
//
// The library does not get ctx: it would later end a session that was never begun because its
// context had ended, and the hub then ends the connection, with everybody's links.
func (c *connection) session(ctx context.Context) (*amqp.Session, error) {
	type begun struct {
		session *amqp.Session
		err     error
	}
	to := make(chan begun)
	running := c.spawn(func() {
		s, err := c.amqp.NewSession(context.Background(), nil)
		select {
		case to <- begun{s, err}:
		case <-ctx.Done(): // nobody waits for it any more
			if err == nil {
				c.end(s)
			}
		}
	})
	if !running {
		return nil, errLost
	}
	select {
	case b := <-to:
		return b.session, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// end ends a session, and with it its links, without waiting.
func (c *connection) end(s *amqp.Session) {
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		_ = s.Close(ctx)
	})
}

// patient hides a context's deadline from the AMQP library, though not that it has passed. The
// library would take it for the deadline of writing to the network, and close the connection, with
// everybody's links, when one caller has no time to wait.
type patient struct{ context.Context }

func (patient) Deadline() (time.Time, bool) { return time.Time{}, false }
