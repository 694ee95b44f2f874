package kafka

import "github.com/eventyard/eventyard/internal/transport/admission"

// hold is the memory of one request of a client. All of them together have Config.Memory: who needs some
// waits for it, and while somebody waits those are cut off who have kept theirs the longest.
type hold struct {
	conn  *Conn
	cut   func()
	share *admission.Share // nil: nothing was counted yet
}

func (c *Conn) newHold(cut func()) *hold { return &hold{conn: c, cut: cut} }

// take makes it so many bytes, and waits for them. The reading goroutine's alone: so memory pushes back
// by not reading.
func (h *hold) take(bytes int) error {
	if h.share == nil {
		if bytes <= freeRequestBytes {
			return nil
		}
		h.share = h.conn.server.cfg.Memory.Share(h.conn.account(), h.cut)
	}
	if h.share.TryTake(bytes) {
		return nil
	}
	return h.share.Take(h.conn.ctx, bytes)
}

// give gives everything back. The nil hold has nothing.
func (h *hold) give() {
	if h != nil && h.share != nil {
		h.share.Give()
	}
}
