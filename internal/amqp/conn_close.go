package amqp

import (
	"errors"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// say tells the peer why the connection ends, ends what is on it, and hears the peer's
// last word if there is one to come.
func (c *Conn) say(err error) {
	c.endAll(err)
	_, ours := judge(err)
	switch {
	case ours && !c.layered:
		c.refuse(err)
		return // there is no language yet to say it in
	case ours:
		c.refuse(err)
		c.answerOpen()
		c.shut(asError(err))
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
func abort(nc net.Conn) { bottom(nc).Close() }

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
