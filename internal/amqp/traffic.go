package amqp

import (
	"strconv"
	"sync/atomic"
	"time"
)

// traffic is what operators are told of a connection.
type traffic struct {
	began          time.Time
	received, sent atomic.Int64
	// holder is whose right was shown last; nil: none was.
	holder atomic.Pointer[string]
}

// ConnInfo is a connection as operators see it.
type ConnInfo struct {
	// ID is the server's, rising with each connection.
	ID        uint64
	Remote    string
	WebSocket bool
	// Holder is whose right the peer has shown last; empty: none yet.
	Holder         string
	Began          time.Time
	Links          int
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
	_, web := c.nc.(*webConn)
	number, _ := strconv.ParseUint(c.id, 10, 64) // we made it of one
	i := ConnInfo{ID: number, Remote: c.Remote(), WebSocket: web, Began: c.traffic.began, Received: c.traffic.received.Load(), Sent: c.traffic.sent.Load()}
	if holder := c.traffic.holder.Load(); holder != nil {
		i.Holder = *holder
	}
	c.mu.Lock()
	i.Links = c.sessions.links
	c.mu.Unlock()
	return i
}
