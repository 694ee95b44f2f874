package hub

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// newDialer notices within half a minute that the other machine is gone.
func newDialer() *net.Dialer {
	return &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
}

// reach opens a stream of bytes to the namespace.
func (c *Client) reach(ctx context.Context) (net.Conn, error) {
	if c.cfg.WebSockets {
		return c.reachWeb(ctx)
	}
	conn, err := c.cfg.Dial(ctx, "tcp", c.at.address(false))
	if err != nil || c.at.plain {
		return conn, err
	}
	secure := tls.Client(conn, c.tls())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func (c *Client) tls() *tls.Config {
	cfg := c.cfg.TLS.Clone()
	if cfg == nil {
		cfg = &tls.Config{}
	}
	if cfg.ServerName == "" {
		cfg.ServerName = c.at.name
	}
	return cfg
}

// subprotocol is the standard's name for AMQP over a WebSocket.
const subprotocol = "amqp"

func (c *Client) reachWeb(ctx context.Context) (net.Conn, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: c.cfg.Dial, TLSClientConfig: c.tls(), DisableKeepAlives: true,
	}
	ws, response, err := websocket.Dial(ctx, c.at.webSocket(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{subprotocol},
	})
	if err != nil {
		if response != nil && response.Body != nil {
			_ = response.Body.Close()
		}
		return nil, err
	}
	// Not the dial's context: the connection outlives it.
	stream := websocket.NetConn(context.Background(), ws, websocket.MessageBinary)
	return webConn{Conn: stream, ws: ws}, nil
}

// webConn is a WebSocket as a stream of bytes.
type webConn struct {
	net.Conn
	ws *websocket.Conn
}

// Close says no goodbye in the WebSocket's way, which would wait for an answer: AMQP has said
// its own.
func (w webConn) Close() error { return w.ws.CloseNow() }
