package connect

import (
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

// fencing are the options of a connection that ends as soon as fence gives an error: nothing is written to
// its socket from then on, whatever the client library has in its buffers or tries again, and it is not
// made anew. What the system has taken before it sends.
func fencing(fence func() error, inside nats.InProcessConnProvider, connectTime time.Duration) []nats.Option {
	if fence == nil {
		return nil
	}
	f := fencer{fence: fence, inside: inside, dialer: net.Dialer{Timeout: connectTime}}
	all := []nats.Option{nats.SetCustomDialer(f)}
	if inside != nil {
		all = append(all, nats.InProcessServer(f))
	}
	return all
}

// fencer makes connections that are fenced.
type fencer struct {
	fence  func() error
	inside nats.InProcessConnProvider
	dialer net.Dialer
}

func (f fencer) Dial(network, address string) (net.Conn, error) {
	return f.fenced(func() (net.Conn, error) { return f.dialer.Dial(network, address) })
}

func (f fencer) InProcessConn() (net.Conn, error) { return f.fenced(f.inside.InProcessConn) }

func (f fencer) fenced(dial func() (net.Conn, error)) (net.Conn, error) {
	if err := f.fence(); err != nil {
		return nil, err
	}
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	return &fencedConn{conn, f.fence}, nil
}

// fencedConn asks before each write. The client library compares connections, so that it is a pointer.
type fencedConn struct {
	net.Conn
	fence func() error
}

func (c *fencedConn) Write(data []byte) (int, error) {
	if err := c.fence(); err != nil {
		_ = c.Close() // nobody uses it any more
		return 0, err
	}
	return c.Conn.Write(data)
}
