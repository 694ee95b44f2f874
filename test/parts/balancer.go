package parts

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Balancer passes TCP connections on to servers in turn, without looking into them. A server that takes
// none is passed over.
type Balancer struct {
	listener net.Listener
	next     atomic.Int64

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]bool // guarded by mu; nil once it is closed
}

// NewBalancer listens at an address until the test ends; connections wait until it serves.
func NewBalancer(t testing.TB, address string) *Balancer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{listener: listener, open: make(map[net.Conn]bool)}
	t.Cleanup(b.close)
	return b
}

// Address is where it listens, as HOST:PORT.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Serve begins to pass connections on to the servers, each a HOST:PORT, until the test ends.
func (b *Balancer) Serve(servers ...string) {
	b.running.Go(func() {
		for {
			conn, err := b.listener.Accept()
			if err != nil {
				return
			}
			first := int(b.next.Add(1))
			b.running.Go(func() { b.pass(conn, servers, first) })
		}
	})
}

// pass carries both directions until one side ends it; the other then sees the same end.
func (b *Balancer) pass(client net.Conn, servers []string, first int) {
	defer b.drop(client)
	server, err := dialFrom(servers, first)
	if err != nil {
		return
	}
	defer b.drop(server)
	if !b.keep(client) || !b.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { carry(server, client) })
	both.Go(func() { carry(client, server) })
	both.Wait()
}

// dialFrom connects to one of the servers or, where it takes nobody, to the next that does.
func dialFrom(servers []string, first int) (conn net.Conn, err error) {
	for i := range servers {
		if conn, err = net.Dial("tcp", servers[(first+i)%len(servers)]); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// carry copies until the source ends, and tells the destination so; a source that fails ends both.
func carry(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		from.Close()
		to.Close()
		return
	}
	to.(*net.TCPConn).CloseWrite()
}

func (b *Balancer) keep(conn net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return false
	}
	b.open[conn] = true
	return true
}

func (b *Balancer) drop(conn net.Conn) {
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, conn)
}

func (b *Balancer) close() {
	b.listener.Close()
	b.mu.Lock()
	for conn := range b.open {
		conn.Close()
	}
	b.open = nil
	b.mu.Unlock()
	b.running.Wait()
}
