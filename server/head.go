package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// The head of a request is read and taken apart before anything of ours sees it, and the map that it
// becomes costs many times its bytes: 130 for a name of two letters. So a stranger's connection pays
// for the bytes of a head as they come, from the account of strangers: see headConn.
const (
	// maxHeaderBytes is for a whole head: bearer tokens with many claims have 8 KiB.
	maxHeaderBytes = 16 << 10
	// headFactor is what a byte of a head may cost.
	headFactor = 32
	// strangerHead of a head cost nothing, so that those who come with what most have, a key or a
	// signature, get in whatever others do. With TLS the handshake comes on top, which looks the same.
	strangerHead   = 2 << 10
	strangerSecure = 4 << 10
	// strangerHolds is the most that a connection pays for at once: more than a whole head. Beyond it,
	// it is read on when it has shown a right, or its head was looked at.
	strangerHolds = 1 << 20
	// strangerBacklog is how many requests may be under way before more of them are read: a request that
	// was taken back at once is some thirty bytes, and costs thousands until it was looked at.
	strangerBacklog = 2 * strangerRequests
	// strangerRead is how much is read at once with TLS, so that requests come to count before many more
	// of them are read: the shortest have sixty bytes.
	strangerRead = 512
	// headPause is how long a connection waits for others to give back what it needs.
	headPause = 50 * time.Millisecond
)

// headListener has the connections of strangers pay for their heads.
type headListener struct{ net.Listener }

func (l headListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: conn, closed: make(chan struct{})}, nil
}

// headConn is a connection whose reader waits where a stranger cannot pay for what came.
type headConn struct {
	net.Conn
	head *head // set before anything is read; nil: nobody pays

	closing sync.Once
	closed  chan struct{}
}

func (c *headConn) Read(b []byte) (int, error) {
	if c.head != nil && c.head.inTurn() {
		// HTTP/2 hands one frame after the other to the goroutine that starts requests, and so the two
		// have a processor to themselves for as long as there is something to read. Whatever else can
		// run comes first: those requests, of which too many end this, and the work of clients.
		runtime.Gosched()
		b = b[:min(len(b), strangerRead)]
	}
	n, err := c.Conn.Read(b)
	if c.head == nil || n == 0 {
		return n, err
	}
	for paid := c.head.came(n); !paid; paid = c.head.came(0) {
		select {
		case <-c.head.changed:
		case <-time.After(headPause):
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func (c *headConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// NetConn is what it is around: for who sets options of sockets.
func (c *headConn) NetConn() net.Conn { return c.Conn }

// ReadFrom and CloseWrite are what net/http asks a connection of TCP for: to send files without
// copying them, and to let a client read why it was refused.
func (c *headConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

func (c *headConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// head is what a stranger's connection has sent of a request's head, and paid for it.
type head struct {
	of *visitor
	// free is how much of it costs nothing.
	free int
	// secure: what comes may be many requests at once, as HTTP/2 has them.
	secure bool
	// changed gets something when there may be less to pay.
	changed chan struct{}

	mu         sync.Mutex
	whole      bool // what comes is no head; guarded by mu
	read, held int  // guarded by mu
}

// come makes the connection pay.
func (h *head) come(conn net.Conn) {
	h.changed, h.free = make(chan struct{}, 1), strangerHead
	if _, h.secure = conn.(*tls.Conn); h.secure {
		h.free = strangerSecure
	}
	if c, ok := beneath(conn).(*headConn); ok {
		c.head = h
	}
}

// inTurn: what comes next is read in small parts, and others have their turn before each.
func (h *head) inTurn() bool {
	if !h.secure || h.of.known.Load() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.whole
}

// came counts bytes; not paid: they are to wait.
func (h *head) came(bytes int) (paid bool) {
	if h.of.known.Load() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole {
		return true
	}
	h.read += bytes
	if h.of.asked.Load() >= strangerBacklog {
		return false
	}
	due := max(0, h.read-h.free)*headFactor - h.held
	if due <= 0 {
		return true
	}
	if h.held+due > strangerHolds || !h.of.permit.Claim(due) {
		return false
	}
	h.held += due
	return true
}

// looked: a head was read, and its request is about to be judged. Over HTTP/1.1 what follows is its
// body. Over HTTP/2 it may be the next head, and what was read may be the heads of requests that wait
// to be judged: so it is paid for until all have been answered.
func (h *head) looked(r *http.Request) {
	h.mu.Lock()
	h.whole = r.ProtoMajor == 1
	h.mu.Unlock()
	h.wake()
}

// begin gives back what was paid: the next head is yet to come.
func (h *head) begin() {
	h.mu.Lock()
	h.of.permit.Free(h.held)
	h.whole, h.read, h.held = false, 0, 0
	h.mu.Unlock()
	h.wake()
}

func (h *head) wake() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// costOf is what the head of a request costs while it is answered, beyond what is free.
func costOf(r *http.Request) int {
	cost := 0
	for name, values := range r.Header {
		for _, value := range values {
			cost += 128 + 2*(len(name)+len(value))
		}
	}
	return max(0, cost-2*strangerHead)
}
