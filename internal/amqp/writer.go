package amqp

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// writer is the writing goroutine: it writes what is in the output, and attends to the clock
// when there is nothing to write. Its fields are its own but for busy.
type writer struct {
	conn  *Conn
	wrote time.Time // when it last wrote
	// busy: it is in the midst of a write. Server.watch reads it, and then attends in its place.
	busy atomic.Bool
}

// pulse is what is done by the clock on an open connection: heartbeats, and the vigil for the
// peer's machine. The writing goroutine and Server.watch see to it; guarded by Conn.mu.
type pulse struct {
	every time.Duration // the longest we are silent
	vigil vigil
}

// run writes for as long as the connection lives. It ends when it has to finish, or cannot
// write. Its panic costs this connection only.
func (w *writer) run() {
	c := w.conn
	defer w.forget()
	var failed error
	if err := c.guarded("writing", func() { failed = w.write() }); err != nil {
		c.refuse(err)
		failed = err
	}
	if errors.Is(failed, os.ErrDeadlineExceeded) {
		c.server.metrics.refuse(reasonWrite)
	}
	if failed != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.cutLocked(failed)
		c.out.take() // nobody will
	}
}

func (w *writer) write() error {
	c := w.conn
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for wrote := false; ; {
		b, finish := w.takeAll(wrote)
		if wrote = b != nil; wrote {
			if err := w.writeBytes(b.bytes); err != nil {
				return err
			}
			c.server.writing.put(b)
			continue
		}
		if finish {
			return nil
		}
		wait := w.attend(time.Now())
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.out.wake:
		case <-timer.C:
		}
	}
}

// takeAll takes the buffer and makes room for who waits for it. Its caller has just written
// something, or not.
func (w *writer) takeAll(wrote bool) (b *box, finish bool) {
	c := w.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrote {
		c.pulse.vigil.wrote(w.wrote, c.server.vanishedAfter)
	}
	c.out.answers.written()
	c.out.acknowledge()
	b = c.out.take()
	c.out.asleep = b == nil
	c.out.queue.next()
	if c.untaken != nil {
		c.untaken.Count(b.size())
	}
	return b, c.out.finish
}

// progress says that the peer takes what it is sent.
func (w *writer) progress() {
	c := w.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untaken != nil {
		c.untaken.Touch()
	}
}

// forget counts nothing any more.
func (w *writer) forget() {
	c := w.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untaken != nil {
		c.untaken.Give()
	}
}

// writeBytes gives the peer WriteTimeout for each piece, and again whenever it has taken
// some of one, which layers above TCP do not report.
func (w *writer) writeBytes(b []byte) error {
	c := w.conn
	w.busy.Store(true)
	defer w.busy.Store(false)
	for len(b) > 0 {
		deadline := time.Now().Add(c.server.cfg.WriteTimeout)
		if err := c.nc.SetWriteDeadline(deadline); err != nil {
			return fmt.Errorf("set write deadline: %w", err)
		}
		n, err := c.nc.Write(b[:min(len(b), writeBytes)])
		c.server.metrics.bytesOut.Add(float64(n))
		c.traffic.sent.Add(int64(n))
		b = b[n:]
		if n > 0 && len(b) > 0 {
			w.progress()
		}
		switch {
		case err == nil || n > 0 && errors.Is(err, os.ErrDeadlineExceeded):
		case time.Now().Before(deadline):
			return fmt.Errorf("write: %w", err)
		default: // WebSockets have other words for it
			return fmt.Errorf("write: %w: %w", os.ErrDeadlineExceeded, err)
		}
	}
	w.wrote = time.Now()
	return nil
}

// attend does what is due by the clock, and returns for how long nothing will be.
func (w *writer) attend(now time.Time) time.Duration {
	c := w.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.out.opened || c.out.deaf() {
		return time.Hour
	}
	vigil := &c.pulse.vigil
	if vigil.wait(now) <= 0 && c.vanishedLocked(now) || c.silentLocked(now) {
		return 0
	}
	quiet := now.Sub(w.wrote)
	if quiet >= c.pulse.every {
		c.out.buf = wire.AppendEmptyFrame(c.out.open())
		return 0
	}
	return min(c.server.cfg.IdleTimeout-c.reader.in.silent(now), c.pulse.every-quiet, vigil.wait(now))
}
