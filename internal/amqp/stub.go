package amqp

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Config is how a server behaves. Zero fields mean the default beside them.
type Config struct {
	// Handler is required.
	Handler Handler
	// Auth nil: PLAIN and EXTERNAL are not offered. EXTERNAL is offered on connections
	// whose TLS layer has verified a client certificate.
	Auth Authenticator
	// Container begins our container id; "eventyard".
	Container string

	// MaxFrameBytes is the largest frame we take; 65536.
	MaxFrameBytes uint32
	// MaxMessageBytes bounds a message on links whose sink names no limit; 1 MiB.
	MaxMessageBytes uint64
	// IdleTimeout is how long a peer may be silent; 60 s.
	IdleTimeout time.Duration
	// OpenTimeout is how long a connection may take from its first byte (TLS handshake
	// included) to its open; 10 s.
	OpenTimeout time.Duration
	// WriteTimeout is how long the peer may take nothing of what we send before it is
	// cut off; 60 s.
	WriteTimeout time.Duration
	// MaxConnections at once; 10000. MaxSessions and MaxLinks of one connection; 256, 1024.
	MaxConnections, MaxSessions, MaxLinks int

	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Server serves connections.
type Server struct{}

// New makes a server. It starts nothing.
func New(cfg Config) (*Server, error) { panic("stub") }

// Serve takes connections from a listener until it is closed or ctx ends, and returns
// when every connection it took has ended. A TLS listener gives *tls.Conn.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { panic("stub") }

// ServeConn serves one connection until it ends, and closes it.
func (s *Server) ServeConn(ctx context.Context, c net.Conn) { panic("stub") }

// ServeHTTP serves AMQP over a WebSocket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { panic("stub") }

// Stop ends all connections politely: links are detached and connections closed with
// amqp:connection:forced. It returns when all have ended, or cuts off the rest when ctx ends.
func (s *Server) Stop(ctx context.Context) error { panic("stub") }

// Conn is one connection.
type Conn struct{}

// ID is unique among the server's connections.
func (c *Conn) ID() string { panic("stub") }

// Hostname is what the peer asked for in its open.
func (c *Conn) Hostname() string { panic("stub") }

// Identity is who the peer is as far as SASL told.
func (c *Conn) Identity() Identity { panic("stub") }

// Context ends when the connection does.
func (c *Conn) Context() context.Context { panic("stub") }

// Log is narrowed to the connection.
func (c *Conn) Log() *slog.Logger { panic("stub") }

// Close ends the connection with an error; from any goroutine.
func (c *Conn) Close(err *Error) { panic("stub") }

// Link is one link.
type Link struct{}

// Request is the peer's attach. It is not to be changed.
func (l *Link) Request() *wire.Attach { panic("stub") }

// Conn is the link's connection.
func (l *Link) Conn() *Conn { panic("stub") }

// Session identifies the link's session within the connection.
func (l *Link) Session() uint16 { panic("stub") }

// Send sends settled messages: up to count of them, all that credit, window and room
// allow at once, and at least one, for which it waits until ctx or the link ends. The
// i-th message is what appendMessage appends; it is called with locks held, so it must
// only append. It returns how many were sent. Only for sources; one goroutine at a time.
func (l *Link) Send(ctx context.Context, count int, appendMessage func(dst []byte, i int) []byte) (int, error) {
	panic("stub")
}

// WaitCredit waits until a message could be sent, so that nobody fetches what he cannot
// send.
func (l *Link) WaitCredit(ctx context.Context) error { panic("stub") }

// Detach ends the link from our side, from any goroutine; nothing is sent on it after.
// When it returns the detach has its place behind all that was sent.
func (l *Link) Detach(err *Error) { panic("stub") }

// Accept settles the delivery as stored.
func (d *Delivery) Accept() { panic("stub") }

// Reject settles the delivery as refused.
func (d *Delivery) Reject(err *Error) { panic("stub") }
