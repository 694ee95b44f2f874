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
	w.to, w.mute, w.state, w.due = p.header, p.mute, unanswered, 0
	w.hold, w.held, w.base = p.hold, 0, 0
	if p.hold != nil {
		w.base = p.hold.bytes
	}
	w.stage.begin(p.hold)
	w.box = w.conn.server.writing.get()
	w.buf = w.box.bytes[:0]
}

// giveBack gives back what the answer has taken.
func (w *Writer) giveBack() {
	w.box.bytes = w.buf
	w.conn.server.writing.put(w.box)
	w.box, w.buf, w.hold = nil, nil, nil
}
