package kafka

import (
	"sync/atomic"
	"time"
)

// traffic is what operators are told of a connection.
type traffic struct {
	began              time.Time
	incoming, outgoing atomic.Int64 // bytes
	requests           atomic.Int64
	lastSent           atomic.Int64 // when something was last sent, in nanoseconds after began
	clientID           atomic.Pointer[string]
}

// request counts one, and notes what the client calls itself.
func (t *traffic) request(clientID string) {
	t.requests.Add(1)
	if before := t.clientID.Load(); before == nil || *before != clientID {
		t.clientID.Store(&clientID)
	}
}

// quiet is how long nothing was sent.
func (t *traffic) quiet() time.Duration {
	return time.Since(t.began) - time.Duration(t.lastSent.Load())
}

func (c *Conn) received(bytes int) {
	c.server.metrics.bytesIn.Add(float64(bytes))
	c.traffic.incoming.Add(int64(bytes))
}

func (c *Conn) sent(bytes int) {
	c.server.metrics.bytesOut.Add(float64(bytes))
	c.traffic.outgoing.Add(int64(bytes))
	c.traffic.lastSent.Store(int64(time.Since(c.traffic.began)))
}

// ConnInfo is a connection as operators see it.
type ConnInfo struct {
	// ID is the server's, rising with each connection.
	ID     uint64
	Remote string
	TLS    bool
	// Holder is whose right the client has shown last; empty: none yet, or nobody is asked.
	Holder string
	// ClientID is what the client calls itself.
	ClientID       string
	Began          time.Time
	Requests       int64
	Received, Sent int64 // bytes
}

// Connections gives those there are, in no order.
func (s *Server) Connections() []ConnInfo {
	var all []ConnInfo
	for _, c := range s.conns.All() {
		all = append(all, c.info())
	}
	return all
}

func (c *Conn) info() ConnInfo {
	i := ConnInfo{
		ID: c.id, Remote: addressOf(c.nc), TLS: c.secure, Holder: c.account(), Began: c.traffic.began,
		Requests: c.traffic.requests.Load(), Received: c.traffic.incoming.Load(), Sent: c.traffic.outgoing.Load(),
	}
	if id := c.traffic.clientID.Load(); id != nil {
		i.ClientID = *id
	}
	return i
}
