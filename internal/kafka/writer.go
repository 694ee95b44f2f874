package kafka

import (
	"errors"
	"fmt"
)

// finish finishes one request: its answer is written when it returns. Its panic costs this connection
// only.
func (w *Writer) finish(p *pending) error {
	c := w.conn
	defer p.hold.give()
	w.borrow(p)
	defer w.giveBack()
	err := c.guarded("finishing a request", func() error { return p.finish(c.ctx, w) })
	switch {
	case err == nil && w.state != answered:
		return errUnanswered
	case err == nil || w.lost || errors.Is(err, errPanic):
		return err
	}
	return fmt.Errorf("%w: %w", errFinish, err)
}

// borrow begins an answer.
func (w *Writer) borrow(p *pending) {
	w.to, w.mute, w.state, w.due, w.held = p.header, p.mute, unanswered, 0, 0
	w.box = w.conn.server.writing.get()
	w.buf = w.box.bytes[:0]
}

// giveBack gives back what the answer has taken.
func (w *Writer) giveBack() {
	w.box.bytes = w.buf
	w.conn.server.writing.put(w.box)
	w.box, w.buf = nil, nil
	if w.held > 0 {
		w.untaken.Give()
	}
}
