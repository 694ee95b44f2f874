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
	parts   int      // bytes of unfinished messages

	// ignoring: we have closed, and all frames but the peer's close are ignored.
	ignoring atomic.Bool

	// The writing goroutine's alone.
	wrote time.Time // when it last wrote

	// mu guards what follows, and the sessions and links. The reading goroutine alone
	// changes the table of sessions, and reads it without mu.
	mu        sync.Mutex
	out       output
	opened    bool          // our open is in the output, or was
	heartbeat time.Duration // the longest we are silent
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
		in:        newInput(nc, int(s.cfg.MaxFrameBytes), s.reading, s.metrics.bytesIn),
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
	writer.Go(c.write)
	err := c.read(ctx)
	c.log.Debug("AMQP connection ends", "why", err)
	c.say(err)
	c.finish()
	writer.Wait()
	c.nc.Close()
	c.in.giveBack()
	c.cut(errEnded)
	c.runs.Wait()
	if c.peer != nil {
		c.guard("Disconnected", c.peer.Disconnected)
	}
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

// say tells the peer why the connection ends, ends what is on it, and hears the peer's
// last word if there is one to come.
func (c *Conn) say(err error) {
	c.cancel(err)
	c.endAll()
	_, ours := judge(err)
	switch {
	case ours && !c.layered:
		c.refuse(err)
		return // there is no language yet to say it in
	case ours:
		c.refuse(err)
		c.answerOpen()
		c.shut(told(err))
	case errors.Is(err, errPeerClosed):
		c.shut(nil)
		return
	case !errors.Is(err, errSaid):
		return // the connection is broken, or was cut
	}
	c.allow(closeWait)
	if !c.opened || errors.Is(err, errFrameHeader) || errors.Is(err, errFrameTooLarge) {
		c.in.discard() // there are no frames to be told apart
		return
	}
	c.awaitClose()
}

// awaitClose ignores all frames but the peer's close.
func (c *Conn) awaitClose() {
	var err error
	defer c.rescue("reading", &err)
	for err == nil {
		err = c.next()
	}
}

// finish lets the writing goroutine write the rest.
func (c *Conn) finish() {
	c.allow(closeWait)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.finish = true
	c.out.signal()
}

// Close ends the connection with an error; from any goroutine. Its links are detached
// with it first.
func (c *Conn) Close(err *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened {
		c.cutLocked(endedBecause(err))
		return
	}
	c.closeLocked(err)
}

// closeLocked detaches all links and closes. What comes from the peer after is ignored but
// its close, for which we wait a while.
func (c *Conn) closeLocked(err *Error) {
	if c.out.closed {
		return
	}
	for _, s := range c.sessions {
		s.detachAllLocked(err)
	}
	c.shutLocked(err)
	c.cancel(endedBecause(err))
}

// shut closes without a word to the links.
func (c *Conn) shut(err *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutLocked(err)
}

func (c *Conn) shutLocked(err *Error) {
	if !c.opened || c.out.closed {
		return
	}
	c.ackAllLocked()
	c.frameLocked(wire.FrameAMQP, 0, func(dst []byte) []byte {
		return wire.AppendClose(dst, &wire.Close{Error: c.fitting(err)})
	})
	c.out.closed = true
	c.ignoring.Store(true)
	c.allowLocked(closeWait)
}

func endedBecause(err *Error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// allow gives the peer so long until it is cut off, whatever happens.
func (c *Conn) allow(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowLocked(d)
}

func (c *Conn) allowLocked(d time.Duration) {
	if c.closing == nil {
		c.closing = time.AfterFunc(d, func() { c.cut(errEnded) })
	}
}

// cut ends the connection without a word.
func (c *Conn) cut(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked(why)
}

func (c *Conn) cutLocked(why error) {
	c.cancel(why)
	c.out.failed = true
	for _, t := range []*time.Timer{c.opening, c.closing} {
		if t != nil {
			t.Stop()
		}
	}
	abort(c.nc)
}

// abort closes without the ceremonies of the layers, for which the peer may have no time.
func abort(nc net.Conn) {
	if layered, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = layered.NetConn()
	}
	nc.Close()
}

// refuse counts what the peer is refused for.
func (c *Conn) refuse(err error) {
	if f, ok := judge(err); ok && f.reason != "" {
		c.server.metrics.refuse(f.reason)
	}
}

// fitting shortens an error's words so that a frame with it is not too long for the peer.
func (c *Conn) fitting(err *Error) *Error {
	const rest = 160 // the frame without the words, at most
	if err == nil || len(err.Description) <= c.frameSize-rest-len(err.Condition) {
		return err
	}
	short := *err
	short.Description = err.Description[:max(0, c.frameSize-rest-len(err.Condition))]
	return &short
}

// rescue makes a handler's panic an error of this connection instead of the end of the
// process.
func (c *Conn) rescue(doing string, err *error) {
	if p := recover(); p != nil {
		c.log.Error("an AMQP handler panicked", "doing", doing, "panic", p, "stack", string(debug.Stack()))
		*err = errPanic
	}
}

// guard calls a handler where its panic must not keep us from going on.
func (c *Conn) guard(doing string, call func()) {
	if err := c.guarded(doing, call); err != nil {
		c.refuse(err)
		c.Close(told(err))
	}
}

func (c *Conn) guarded(doing string, call func()) (err error) {
	defer c.rescue(doing, &err)
	call()
	return nil
}
