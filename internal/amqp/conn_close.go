package amqp

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/transport/conns"
)

// deadlines cut off a peer that does not open in time, or does not answer our last word. The
// connection is their owner; guarded by Conn.mu.
type deadlines struct {
	opening *time.Timer // set when reading begins
	closing *time.Timer // set with the first of our last words
}

// Close ends the connection with an error; from any goroutine. Its links are detached
// with it first.
func (c *Conn) Close(err *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.out.opened {
		c.cutLocked(endedBecause(err))
		return
	}
	c.closeLocked(err)
}

// closeLocked detaches all links and closes. What comes from the peer after is ignored but
// its close, for which we wait a while.
func (c *Conn) closeLocked(err *Error) {
	if c.out.closed.Load() {
		return
	}
	for _, s := range c.sessions.byChannel {
		for _, l := range s.links {
			if l != nil {
				l.detachLocked(err)
			}
		}
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
	if !c.out.opened || c.out.closed.Load() {
		return
	}
	c.out.acknowledge()
	c.frameLocked(wire.FrameAMQP, 0, func(dst []byte) []byte {
		return wire.AppendClose(dst, &wire.Close{Error: c.fitting(err)})
	})
	c.out.closed.Store(true)
	c.allowLocked(closeWait)
}

func endedBecause(err *Error) error {
	if err == nil {
		return errEnded
	}
	return err
}

// allowLocked gives the peer so long until it is cut off, whatever happens.
func (c *Conn) allowLocked(d time.Duration) {
	if c.deadlines.closing == nil {
		c.deadlines.closing = time.AfterFunc(d, func() { c.cut(errEnded) })
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
	for _, t := range []*time.Timer{c.deadlines.opening, c.deadlines.closing} {
		if t != nil {
			t.Stop()
		}
	}
	conns.Bottom(c.nc).Close() // without the ceremonies of the layers, for which the peer may have no time
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
	if err == nil {
		return nil
	}
	words := strings.ToValidUTF8(err.Description, "\ufffd") // as it is written
	room := max(0, c.frameSize-rest-len(err.Condition))
	if len(words) <= room {
		return err
	}
	for room > 0 && !utf8.RuneStart(words[room]) {
		room--
	}
	return &Error{Condition: err.Condition, Description: words[:room]}
}
