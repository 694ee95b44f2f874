package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// endpoint is where a namespace is, and what it is called.
type endpoint struct {
	// host is as the connection string has it, maybe with a port; name is without.
	host, name string
	// port is the connection string's; empty if it has none.
	port string
	// plain: no TLS.
	plain bool
}

// parse reads a connection string. One that is used with Config.Token needs no key.
func parse(text string, bearer bool) (auth.ConnectionString, error) {
	c, err := auth.ParseConnectionString(text)
	if !bearer {
		return c, err
	}
	if err == nil {
		return c, errors.New("the connection string has a key or signature beside Config.Token: one of them is enough")
	}
	// A stand-in for what is missing lets everything else still be checked.
	c, err = auth.ParseConnectionString(text + ";SharedAccessSignature=none")
	c.Signature = ""
	return c, err
}

func newEndpoint(c auth.ConnectionString) (endpoint, error) {
	at := endpoint{host: c.Host(), plain: c.Emulator}
	if !strings.Contains(strings.TrimPrefix(at.host, "["), ":") || strings.HasSuffix(at.host, "]") {
		at.name = strings.Trim(at.host, "[]")
		return at, nil
	}
	name, port, err := net.SplitHostPort(at.host)
	if err != nil {
		return at, fmt.Errorf("the connection string's endpoint: %w", err)
	}
	at.name, at.port = name, port
	return at, nil
}

// address is what is dialled.
func (at endpoint) address(web bool) string {
	port := at.port
	switch {
	case port != "":
	case web && at.plain:
		port = "80"
	case web:
		port = "443"
	case at.plain:
		port = "5672"
	default:
		port = "5671"
	}
	return net.JoinHostPort(at.name, port)
}

// audience is what a token for a path of the namespace is made for, as the official client writes
// it.
func (at endpoint) audience(path string) string {
	if at.plain {
		return "amqp://" + at.host + "/" + path
	}
	return "amqps://" + at.host + "/" + path
}

// reach opens a stream of bytes to the namespace.
func (c *Client) reach(ctx context.Context) (net.Conn, error) {
	secure := c.cfg.TLS.Clone()
	if secure == nil {
		secure = &tls.Config{}
	}
	secure.ServerName = cmp.Or(secure.ServerName, c.at.name)
	if c.cfg.WebSockets {
		return c.reachWeb(ctx, secure)
	}
	conn, err := c.cfg.Dial(ctx, "tcp", c.at.address(false))
	if err != nil || c.at.plain {
		return conn, err
	}
	stream := tls.Client(conn, secure)
	if err := stream.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return stream, nil
}

func (c *Client) reachWeb(ctx context.Context, secure *tls.Config) (net.Conn, error) {
	scheme := "wss"
	if c.at.plain {
		scheme = "ws"
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: c.cfg.Dial, TLSClientConfig: secure, DisableKeepAlives: true,
	}
	ws, response, err := websocket.Dial(ctx, scheme+"://"+c.at.address(true)+"/$servicebus/websocket", &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: transport},
		Subprotocols: []string{"amqp"}, // the standard's name for AMQP over a WebSocket
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

// Close does not close in the WebSocket's way, which would wait for an answer: AMQP has closed
// already.
func (w webConn) Close() error { return w.ws.CloseNow() }
