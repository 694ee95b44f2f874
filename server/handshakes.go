package server

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// turnListener has the TLS handshakes of its connections take turns, whatever the protocol above.
//
// A handshake has its turn from when the client's hello has come until the yard waits for the client again: that is what
// it costs. A client that says nothing, or nothing more, takes no turn, but only the time that each listener gives it to
// show a right.
type turnListener struct {
	net.Listener
	ledger *admission.Ledger
}

func (l turnListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &turnConn{Conn: conn, ledger: l.ledger}
	c.open, c.close = context.WithCancel(context.Background())
	return c, nil
}

// turnConn is a connection beneath TLS.
type turnConn struct {
	net.Conn
	ledger *admission.Ledger
	// open ends when the connection is closed. It is a field because it belongs to the connection's life.
	open  context.Context
	close context.CancelFunc

	mu sync.Mutex
	// end ends the turn that it has; nil: it has none. Guarded by mu.
	end func()
}

// takeTurns has a configuration, which picks certificates by GetCertificate, ask for a turn for each handshake of a
// turnConn: when the first hello has come, and again before it signs, as a client that was asked for another hello was
// waited for since.
func takeTurns(cfg *tls.Config) {
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, takeTurn(hello) }
	certificate := cfg.GetCertificate
	cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if err := takeTurn(hello); err != nil {
			return nil, err
		}
		return certificate(hello)
	}
}

// takeTurn takes the turn of who says hello, unless it has one.
func takeTurn(hello *tls.ClientHelloInfo) error {
	for conn := hello.Conn; conn != nil; {
		if c, ok := conn.(*turnConn); ok {
			return c.take(hello.Context())
		}
		layer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = layer.NetConn()
	}
	return nil
}

func (c *turnConn) take(ctx context.Context) error {
	c.mu.Lock()
	has := c.end != nil
	c.mu.Unlock()
	if has {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	end, err := c.ledger.Handshake(ctx, c.RemoteAddr().String())
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.end = end
	c.mu.Unlock()
	if c.open.Err() != nil {
		c.give()
	}
	return nil
}

func (c *turnConn) give() {
	c.mu.Lock()
	end := c.end
	c.end = nil
	c.mu.Unlock()
	if end != nil {
		end()
	}
}

// Read waits for the client, who has time for it.
func (c *turnConn) Read(b []byte) (int, error) {
	c.give()
	return c.Conn.Read(b)
}

func (c *turnConn) Close() error {
	c.close()
	c.give()
	return c.Conn.Close()
}

// NetConn is what it is around: for who sets options of sockets.
func (c *turnConn) NetConn() net.Conn { return c.Conn }

// CloseWrite is for net/http, which lets a client read why it was refused.
func (c *turnConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
