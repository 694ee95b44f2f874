package kafka

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

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// Conn is one connection. What the reading goroutine alone has is in reader, what the writing goroutine
// alone has in writer; requests go from the one to the other by the queue.
type Conn struct {
	server *Server
	nc     net.Conn
	id     uint64
	log    *slog.Logger
	permit *admission.Permit
	// secure: there is a TLS layer. Its state is tls, which is there before the first request.
	secure bool
	tls    *tls.ConnectionState

	ctx    context.Context
	cancel context.CancelCauseFunc

	reader reader
	writer Writer
	// queue is what is under way, in order. The writing goroutine takes from it until it is closed.
	queue    chan *pending
	underWay atomic.Int32
	// who is who the client is; nil: it is a stranger.
	who     atomic.Pointer[credential]
	traffic traffic
	// drained is closed when draining begins.
	drained chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// draining: no request is to be taken any more. awaiting: the reading goroutine waits for one.
	draining, awaiting bool
	deadlines          deadlines
}

// credential is who a client has shown to be.
type credential struct {
	identity any
	account  string
	until    time.Time // zero: for ever
}

// deadlines cut the connection off; guarded by Conn.mu.
type deadlines struct {
	showing *time.Timer // the client has to show who it is
	expiry  *time.Timer // its token ends
	closing *time.Timer // it was told to go, or everybody is
}

// pending is a request that is under way.
type pending struct {
	header header
	finish Finish
	hold   *hold // nil: none, for what is the server's own
	// mute: it was not read to its end, and has no answer, whatever the handler says.
	mute bool
}

func newConn(ctx context.Context, s *Server, nc net.Conn, id uint64, permit *admission.Permit) *Conn {
	c := &Conn{
		server:  s,
		nc:      nc,
		id:      id,
		permit:  permit,
		log:     s.cfg.Log.With("conn", id, "remote", addressOf(nc)),
		queue:   make(chan *pending, maxUnderWay),
		drained: make(chan struct{}),
	}
	_, c.secure = nc.(*tls.Conn)
	c.traffic.began = time.Now()
	c.reader = reader{conn: c, in: newInput(nc, c.received)}
	c.reader.sasl.reader = &c.reader
	c.writer.conn = c
	c.writer.stage.init(writeGrace)
	// When ctx ends what is under way is finished, and its own context ends then.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

func addressOf(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Context ends when the connection does.
func (c *Conn) Context() context.Context { return c.ctx }

// Draining is closed when no more requests are taken, because the server stops: what is under way is
// finished, and what waits, such as a fetch for events to come, is answered at once with what there is.
func (c *Conn) Draining() <-chan struct{} { return c.drained }

// Identity is what the authenticator gave, the last time; nil where nobody is asked.
func (c *Conn) Identity() any {
	if who := c.who.Load(); who != nil {
		return who.identity
	}
	return nil
}

// account is whose right the client has shown; empty: nobody knows.
func (c *Conn) account() string {
	if who := c.who.Load(); who != nil {
		return who.account
	}
	return ""
}

// LocalAddr is where the client has reached us.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr is where it comes from.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// ServerName is what the client asked for by TLS; empty where it did not.
func (c *Conn) ServerName() string {
	if c.tls == nil {
		return ""
	}
	return c.tls.ServerName
}

// TLS reports whether the connection is encrypted.
func (c *Conn) TLS() bool { return c.secure }

// Log is narrowed to the connection.
func (c *Conn) Log() *slog.Logger { return c.log }

// Close ends the connection at once, from any goroutine. The reason is for the log, for Kafka has no word
// for it.
func (c *Conn) Close(reason error) {
	c.log.Info("Kafka connection is closed", "reason", reason)
	c.cut(reason)
}

// run is the connection's life, in the reading goroutine.
func (c *Conn) run(ctx context.Context) {
	var writing sync.WaitGroup
	writing.Go(c.finishAll)
	err := c.reader.run()
	c.log.Debug("Kafka connection ends", "why", err)
	if c.ctx.Err() == nil { // else it was counted when it was cut
		c.refuse(err)
	}
	c.end(err)
	close(c.queue)
	writing.Wait()
	c.mu.Lock()
	c.allowLocked(closeWait) // for the ceremony of TLS
	c.mu.Unlock()
	c.nc.Close()
	c.reader.in.giveBack()
	c.cut(errEnded)
	if peer := c.reader.peer; peer != nil {
		c.refuse(c.guarded("Disconnected", func() error { peer.Disconnected(); return nil }))
	}
}

// end decides on what is under way when the last request was read: where the client can still hear of it
// it is finished, else it ends with the connection.
func (c *Conn) end(err error) {
	if judge(err) == "" && !errors.Is(err, errDraining) {
		c.cut(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowLocked(closeWait)
}

// finishAll is the writing goroutine: it finishes the requests that are under way, one at a time, until
// there are no more to come. Where the connection has ended it goes on, so that each is finished.
func (c *Conn) finishAll() {
	w := &c.writer
	for p := range c.queue {
		if err := w.finish(p); err != nil {
			c.failed(err)
		}
		c.underWay.Add(-1)
	}
}

// failed ends the connection because a request could not be finished. That is said once.
func (c *Conn) failed(err error) {
	if c.ctx.Err() != nil {
		return
	}
	level := slog.LevelDebug
	if judge(err) == reasonHandler {
		level = slog.LevelWarn
	}
	c.log.Log(c.ctx, level, "Kafka request was not finished", "error", err)
	c.refuse(err)
	c.cut(err)
}

// refuse counts what the client is refused for.
func (c *Conn) refuse(err error) {
	if reason := judge(err); reason != "" {
		c.server.metrics.refuse(reason)
	}
}

// recoverAs makes a panic, be it a handler's or our own, an error of this connection instead of the end
// of the process.
func (c *Conn) recoverAs(doing string, err *error) {
	if p := recover(); p != nil {
		c.log.Error("panic on a Kafka connection", "doing", doing, "panic", p, "stack", string(debug.Stack()))
		*err = errPanic
	}
}

func (c *Conn) guarded(doing string, call func() error) (err error) {
	defer c.recoverAs(doing, &err)
	return call()
}
