package kafka

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/transport/admission"
)

// hold is the memory of one request of a client, from when it is read until its answer is written. All of
// them together have Config.Memory: who needs some waits for it, and has none meanwhile. While somebody
// waits, those are pressed who have kept theirs the longest. It is one goroutine's at a time, the reading
// one's and then the writing one's, but for press. The nil hold counts nothing.
type hold struct {
	conn *Conn
	// holder is whose memory it is.
	holder string
	share  *admission.Share // nil: nothing was counted yet
	bytes  int              // counted
	// queued: the request has been read, and is the writing goroutine's. pressed: press was called.
	queued, pressed atomic.Bool
}

// newHold is for a request that is answered out of what is stored, or at once.
func (c *Conn) newHold() *hold { return &hold{conn: c, holder: c.account()} }

// newProduceHold is for one whose batches have to be stored. They are another holder's, so that producers
// who send faster than that goes do not keep the readers of their policy waiting.
func (c *Conn) newProduceHold() *hold { return &hold{conn: c, holder: c.account() + " produces"} }

// try makes it so many bytes, if there is room. It becomes no younger by what is added.
func (h *hold) try(bytes int) bool {
	if !h.counts(bytes) {
		return true
	}
	if !h.share.Grow(bytes) {
		return false
	}
	h.bytes = bytes
	return true
}

// take is try that waits until there is room, or ctx ends. By the reading goroutine: so memory pushes back
// by not reading.
func (h *hold) take(ctx context.Context, bytes int) error {
	if h.try(bytes) {
		return nil
	}
	h.bytes = 0
	if err := h.share.Take(ctx, bytes); err != nil {
		return err
	}
	h.bytes = bytes
	return nil
}

// counts: so many bytes are to be counted, as those of small requests are not.
func (h *hold) counts(bytes int) bool {
	if h == nil || h.share == nil && bytes <= freeRequestBytes {
		return false
	}
	h.open()
	return true
}

// open has everything counted from now on, however little it is.
func (h *hold) open() {
	if h.share == nil {
		h.share = h.conn.server.cfg.Memory.Share(h.holder, h.press)
	}
}

// set makes it so many bytes, which are in memory whether there is room or not.
func (h *hold) set(bytes int) {
	if h.counts(bytes) && bytes != h.bytes {
		h.share.Keep(bytes)
		h.bytes = bytes
	}
}

// touch says that the client takes what it is sent.
func (h *hold) touch() {
	if h != nil && h.bytes > 0 {
		h.share.Touch()
	}
}

// give gives everything back.
func (h *hold) give() { h.set(0) }

// press is called by others, again and again, while somebody waits for memory and this was kept for long.
// If that is because the client does not send, or does not take what it is sent, it is cut off. Where we
// are at work, or wait for its sake, it is not to blame: then the wait is to come to an end, and so are
// those of requests that stand before it.
func (h *hold) press() {
	h.pressed.Store(true)
	at := &h.conn.reader.in.stage
	if h.queued.Load() {
		at = &h.conn.writer.stage
	}
	if at.stuck() {
		h.conn.cutOff()
		return
	}
	at.hurry()
}

// stage is one of the two goroutines of a connection, as it looks to those who need memory.
type stage struct {
	// grace is for how long the client may be waited for, and not be to blame.
	grace time.Duration
	// since is when the client was begun to be waited for, in nanoseconds since 1970; 0: it is not.
	since atomic.Int64
	// hurried has a value when other waits are to come to an end.
	hurried chan struct{}
}

func (s *stage) init(grace time.Duration) { s.grace, s.hurried = grace, make(chan struct{}, 1) }

func (s *stage) block()   { s.since.Store(time.Now().UnixNano()) }
func (s *stage) unblock() { s.since.Store(0) }

// stuck: it is the client that is waited for.
func (s *stage) stuck() bool {
	since := s.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) >= s.grace
}

func (s *stage) hurry() {
	select {
	case s.hurried <- struct{}{}:
	default:
	}
}

// begin begins with a request, which may have been pressed before its turn.
func (s *stage) begin(h *hold) {
	select {
	case <-s.hurried:
	default:
	}
	if h != nil && h.pressed.Load() {
		s.hurry()
	}
}
