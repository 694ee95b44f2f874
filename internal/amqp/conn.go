package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Conn is one connection.
type Conn struct {
	server *Server
	nc     net.Conn
	id     string
	log    *slog.Logger
	tls    *tls.ConnectionState // nil without such a layer
	// refusal is what the peer is told when it opens a connection that is beyond a limit.
	refusal *Error

	ctx    context.Context
	cancel context.CancelCauseFunc
	runs   sync.WaitGroup // the sources' goroutines

	// The reading goroutine's, until the peer's open; fixed from then on.
	identity  Identity
	hostname  string
	frameSize int // the largest frame that the peer takes

	// The reading goroutine's alone.
	in      *input
	layered bool     // all protocol headers have been agreed on
	peer    Peer     // nil until the connection is open
	last    *session // the one that was last used
	parts   int      // bytes that unfinished messages hold
	heirs   int      // bytes of attaches that wait for their handles

	// ignoring: we have closed, and all frames but the peer's close are ignored.
	ignoring atomic.Bool

	// The writing goroutine's alone.
	wrote time.Time // when it last wrote

	// writing: it is in the midst of a write.
	writing atomic.Bool

	// mu guards what follows, and the sessions and links. The reading goroutine alone
	// changes the table of sessions, and reads it without mu.
	mu        sync.Mutex
	out       output
	opened    bool          // our open is in the output, or was
	heartbeat time.Duration // the longest we are silent
	vigil     vigil
	sessions  map[uint16]*session
	live      int         // sessions that have not ended
	links     int         // links of all sessions, those included whose detach we await
	opening   *time.Timer // cuts off who does not open in time
	closing   *time.Timer // cuts off who does not answer our last word
}

func newConn(ctx context.Context, s *Server, nc net.Conn, id string) *Conn {
	c := &Conn{
		server:    s,
		nc:        nc,
		id:        id,
		log:       s.cfg.Log.With("conn", id, "remote", remoteOf(nc)),
		in:        newInput(nc, int(min(s.cfg.MaxFrameBytes, strangerFrameBytes)), s.reading, s.metrics.bytesIn),
		frameSize: wire.MinMaxFrameBytes,
		sessions:  map[uint16]*session{},
		wrote:     time.Now(),
		out:       output{pool: s.writing, wake: make(chan struct{}, 1)},
	}
	// When ctx ends the connection is closed politely, and its own context ends then.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

func remoteOf(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// ID is unique among the server's connections.
func (c *Conn) ID() string { return c.id }

// Hostname is what the peer asked for in its open.
func (c *Conn) Hostname() string { return c.hostname }

// Identity is who the peer is as far as SASL told.
func (c *Conn) Identity() Identity { return c.identity }

// Context ends when the connection does.
func (c *Conn) Context() context.Context { return c.ctx }

// Log is narrowed to the connection.
func (c *Conn) Log() *slog.Logger { return c.log }

// run is the connection's life, in the reading goroutine.
func (c *Conn) run(ctx context.Context) {
	var writer sync.WaitGroup
	writer.Go(c.writeGuarded)
	err := c.read(ctx)
	c.log.Debug("AMQP connection ends", "why", err)
	c.say(err)
	c.finish()
	writer.Wait()
	c.nc.Close()
	c.in.giveBack()
	c.cut(errEnded)
	c.giveBack()
	c.runs.Wait()
	if c.peer != nil {
		c.guard("Disconnected", c.peer.Disconnected)
	}
}

// giveBack returns what the connection has of the shared budgets, when nothing is added any
// more.
func (c *Conn) giveBack() {
	c.server.parts.giveBack(c.parts)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.answers.giveBack(c.out.reserved + c.out.taken)
	c.out.reserved, c.out.taken = 0, 0
}

// read goes through the layers and then takes frames, until there is a reason to end.
func (c *Conn) read(ctx context.Context) (err error) {
	defer c.rescue("reading", &err)
	c.mu.Lock()
	c.opening = time.AfterFunc(c.server.cfg.OpenTimeout, c.openTimedOut)
	c.mu.Unlock()
	tune(c.nc)
	if err := c.handshake(ctx); err != nil {
		return err
	}
	if err := c.layers(); err != nil {
		return err
	}
	for {
		if err := c.next(); err != nil {
			return err
		}
	}
}

func (c *Conn) openTimedOut() {
	c.server.metrics.refuse(reasonOpenTimeout)
	c.cut(errors.New("no open in time"))
}

// rescue makes a panic, be it a handler's or our own, an error of this connection instead
// of the end of the process.
func (c *Conn) rescue(doing string, err *error) {
	if p := recover(); p != nil {
		c.log.Error("panic on an AMQP connection", "doing", doing, "panic", p, "stack", string(debug.Stack()))
		*err = errPanic
	}
}

// guard calls a handler where its panic must not keep us from going on.
func (c *Conn) guard(doing string, call func()) {
	if err := c.guarded(doing, call); err != nil {
		c.refuse(err)
		c.Close(asError(err))
	}
}

func (c *Conn) guarded(doing string, call func()) (err error) {
	defer c.rescue(doing, &err)
	call()
	return nil
}
