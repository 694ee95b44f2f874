package amqp

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/transport/admission"
	"github.com/eventyard/eventyard/internal/transport/conns"
)

// Conn is one connection. Its state is divided by owner: what the reading goroutine alone has is
// in reader, what the writing goroutine alone has in writer, and what they share with the
// sources, the handlers and the timers is guarded by mu, in one piece for each purpose.
type Conn struct {
	server *Server
	nc     net.Conn
	id     string
	log    *slog.Logger
	// refusal is sent to the peer when it opens a connection that has no permit.
	refusal *Error
	// permit is the connection's in the account of all; nil with a refusal.
	permit *admission.Permit
	// serving: it has a permit. Guarded by the server's mutex.
	serving bool
	// known: the peer has shown a right. What it may have until then is in limits.go.
	known atomic.Bool

	ctx    context.Context
	cancel context.CancelCauseFunc
	runs   sync.WaitGroup // the sources' goroutines

	// The reading goroutine's until the peer's open; fixed from then on.
	handshake handshake
	hostname  string
	frameSize int // the largest frame that the peer takes

	reader reader
	writer writer

	// mu guards what follows, and of sessions and links what says so.
	mu        sync.Mutex
	out       output
	sessions  sessions
	pulse     pulse
	deadlines deadlines
	// untaken counts what is being written; nil until the peer has shown a right.
	untaken *admission.Share

	traffic *traffic
}

func newConn(ctx context.Context, s *Server, nc net.Conn, id string, permit *admission.Permit) *Conn {
	c := &Conn{
		server:    s,
		nc:        nc,
		id:        id,
		permit:    permit,
		log:       s.cfg.Log.With("conn", id, "remote", remoteOf(nc)),
		frameSize: wire.MinMaxFrameBytes,
		sessions:  sessions{byChannel: map[uint16]*session{}},
		out:       output{pool: s.writing, answers: answers{all: &s.answers}, wake: make(chan struct{}, 1)},
	}
	c.handshake.conn = c
	c.reader = reader{
		conn:  c,
		in:    newInput(nc, int(min(s.cfg.MaxFrameBytes, openFrameBytes)), s.strangers, s.metrics.bytesIn),
		parts: reassembly{conn: c, permit: permit},
	}
	c.traffic = &traffic{began: time.Now()}
	c.reader.in.traffic, c.reader.in.strange = c.traffic, true
	c.writer.conn, c.writer.wrote = c, time.Now()
	// When ctx ends the connection is closed politely, and its own context ends then.
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

// Remote is the peer's address; empty if it has none.
func (c *Conn) Remote() string { return remoteOf(c.nc) }

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

// Identity is who the peer is as far as SASL knows.
func (c *Conn) Identity() Identity { return c.handshake.identity }

// Context ends when the connection does.
func (c *Conn) Context() context.Context { return c.ctx }

// Know says that the peer has shown a right: it is a client from now on, with all that clients may
// have. Its permit, and what it does not take, are counted for the holder, such as the policy that it came with. It may
// be called again, from any goroutine. Where there is no permit for one more client, or of the holder's, the error is what
// to close the connection with.
func (c *Conn) Know(holder string) error {
	c.traffic.holder.Store(&holder)
	if c.known.Load() {
		return nil
	}
	if err := c.permit.Know(holder); err != nil {
		c.server.metrics.refuse(reasonConnections)
		return errorFull(err)
	}
	c.known.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untaken == nil {
		c.untaken = c.server.cfg.Memory.Share(holder, c.CutOff)
	}
	return nil
}

// CutOff ends the connection at once, for a peer that does not take what it is sent. It takes no lock
// and does not wait.
func (c *Conn) CutOff() { conns.Bottom(c.nc).Close() }

// Known reports whether the peer has shown a right.
func (c *Conn) Known() bool { return c.known.Load() }

// Claim takes memory for what is kept for the peer. Where strangers have too little left, one that
// holds more makes room and is cut off. It is false, and takes nothing, where that is too much for a
// stranger; what a client may have is for the caller to bound. No lock may be held that the end of
// another connection needs.
func (c *Conn) Claim(bytes int) bool { return c.permit.Claim(bytes) }

// Free gives back what was claimed.
func (c *Conn) Free(bytes int) { c.permit.Free(bytes) }

// allowed is a limit, as it holds for a client or for a stranger.
func (c *Conn) allowed(client, stranger int) int {
	if c.known.Load() {
		return client
	}
	return min(client, stranger)
}

// Log is narrowed to the connection.
func (c *Conn) Log() *slog.Logger { return c.log }

// run is the connection's life, in the reading goroutine.
func (c *Conn) run() {
	var writing sync.WaitGroup
	writing.Go(c.writer.run)
	err := c.reader.run()
	c.log.Debug("AMQP connection ends", "why", err)
	c.endAll(err)
	c.reader.say(err)
	c.mu.Lock()
	c.allowLocked(closeWait)
	c.out.finish = true // when all is written
	c.out.signal()
	c.mu.Unlock()
	writing.Wait()
	c.nc.Close()
	c.reader.in.giveBack()
	c.cut(errEnded)
	c.reader.parts.endAll()
	c.mu.Lock()
	c.out.answers.giveBack()
	c.mu.Unlock()
	c.runs.Wait()
	if peer := c.reader.peer; peer != nil {
		c.guard("Disconnected", peer.Disconnected)
	}
}

// recoverAs makes a panic, be it a handler's or our own, an error of this connection instead
// of the end of the process.
func (c *Conn) recoverAs(doing string, err *error) {
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
	defer c.recoverAs(doing, &err)
	call()
	return nil
}

// frameLocked appends a frame: what body appends to the frame's head. Where that is one answer
// too many the connection is closed.
func (c *Conn) frameLocked(t wire.FrameType, channel uint16, body func(dst []byte) []byte) {
	if c.out.deaf() {
		return
	}
	dst, mark := wire.BeginFrame(c.out.open(), t, channel)
	c.answeredLocked(wire.EndFrame(body(dst), mark), mark)
}

// answeredLocked takes a buffer to which an answer was appended, whose frame begins at mark.
func (c *Conn) answeredLocked(buf []byte, mark wire.Mark) {
	c.out.buf = buf
	c.out.signal()
	if !c.out.answers.add(len(buf)-int(mark), c.allowed(maxAnswerBytes, strangerAnswerBytes)) {
		c.refuse(errOutputFull)
		c.closeLocked(asError(errOutputFull))
	}
}

// answerOpen sends our open, once.
func (c *Conn) answerOpen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.opened {
		return
	}
	cfg := &c.server.cfg
	c.frameLocked(wire.FrameAMQP, 0, func(dst []byte) []byte {
		return wire.AppendOpen(dst, &wire.Open{
			ContainerID:  c.server.container,
			MaxFrameSize: wire.Some(cfg.MaxFrameBytes),
			ChannelMax:   wire.Some(cfg.channelMax()),
			IdleTimeout:  wire.Some(uint32(cfg.IdleTimeout.Milliseconds())),
		})
	})
	c.out.opened = true
	c.pulse.every = maxHeartbeat
	c.deadlines.opening.Stop()
}

// beatFor makes our silences as short as the peer asks for: half of what it would bear.
func (c *Conn) beatFor(bears wire.Opt[uint32]) {
	if bears.Value == 0 {
		return
	}
	half := time.Duration(bears.Value) * time.Millisecond / 2
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulse.every = max(minHeartbeat, min(half, maxHeartbeat))
	c.out.signal() // the writing goroutine may have gone to sleep for longer already
}

// vanishedLocked looks after the peer's machine, and cuts the connection off if there is
// none any more. Where the kernel knows nothing, the idle time-out has to do.
func (c *Conn) vanishedLocked(now time.Time) bool {
	state, ok := c.server.tcpState(c.nc)
	if !ok {
		c.pulse.vigil = vigil{}
		return false
	}
	if !c.pulse.vigil.look(now, state, c.server.vanishedAfter) {
		return false
	}
	c.server.metrics.refuse(reasonVanished)
	c.cutLocked(errVanished)
	return true
}

// silentLocked closes the connection if the peer has been silent for too long.
func (c *Conn) silentLocked(now time.Time) bool {
	idle := c.server.cfg.IdleTimeout
	if c.reader.in.silent(now) < idle {
		return false
	}
	c.server.metrics.refuse(reasonIdle)
	c.closeLocked(errorIdle(idle.Milliseconds(), c.server.container))
	return true
}
