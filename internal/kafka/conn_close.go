package kafka

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/transport/conns"
)

// let makes a stranger a client, or renews who a client is.
func (c *Conn) let(who credential) error {
	if err := c.permit.Know(who.account); err != nil {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	stop(c.deadlines.showing)
	stop(c.deadlines.expiry)
	if c.deadlines.expiry = nil; !who.until.IsZero() {
		c.deadlines.expiry = time.AfterFunc(time.Until(who.until), func() { c.expel(errExpired) })
	}
	if c.who.Swap(&who) == nil {
		c.reader.in.pool, c.reader.in.strange = c.server.reading, false
	}
	return nil
}

// expect gives a stranger so much time to show who it is.
func (c *Conn) expect(within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlines.showing = time.AfterFunc(within, func() { c.expel(errAuthTimeout) })
}

// expel ends the connection for a reason that is counted.
func (c *Conn) expel(why error) {
	c.log.Debug("Kafka client is cut off", "why", why)
	c.refuse(why)
	c.cut(why)
}

// patience is for how much longer the client may be silent, when it has been for long: it may be waiting
// for an answer, or have had one since.
func (c *Conn) patience() time.Duration {
	idle := c.server.cfg.IdleTimeout
	if c.underWay.Load() > 0 {
		return idle
	}
	return idle - c.traffic.quiet()
}

// await is called before a request is waited for, for so long. False: none is to be taken.
func (c *Conn) await(wait time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.awaiting = true
	c.nc.SetReadDeadline(time.Now().Add(wait)) // one that is closed says so when it is read
	return true
}

// awaited is called when the wait is over. False: whatever came is not to be taken.
func (c *Conn) awaited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaiting = false
	return !c.draining
}

// drain has what is under way finished, and nothing taken any more. Strangers have nothing under way.
func (c *Conn) drain() {
	if c.who.Load() == nil {
		c.cut(errDraining)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return
	}
	c.draining = true
	close(c.drained)
	c.allowLocked(drainWait)
	if c.awaiting {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// allowLocked gives the connection so long until it is cut off, whatever happens.
func (c *Conn) allowLocked(d time.Duration) {
	if c.deadlines.closing == nil {
		c.deadlines.closing = time.AfterFunc(d, func() { c.cut(errEnded) })
	}
}

// cut ends the connection without a word. It may be called again.
func (c *Conn) cut(why error) {
	c.cancel(why)
	c.mu.Lock()
	stop(c.deadlines.showing)
	stop(c.deadlines.expiry)
	stop(c.deadlines.closing)
	c.mu.Unlock()
	c.cutOff()
}

// cutOff closes the connection under all layers, without their ceremonies, for which the client may have
// no time. It takes no lock and does not wait.
func (c *Conn) cutOff() { conns.Bottom(c.nc).Close() }

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}
