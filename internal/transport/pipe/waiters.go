package pipe

import (
	"os"
	"time"
)

// errDeadline is what a net.Conn says when a deadline has passed.
var errDeadline = os.ErrDeadlineExceeded

func (w *waiters) expired() bool {
	return !w.deadline.IsZero() && !time.Now().Before(w.deadline)
}

// wait returns after wake was called, or the deadline has passed, or for no reason. It sets the
// timer; one that is set for an earlier deadline is moved, and does no harm if it goes off.
func (w *waiters) wait() {
	if !w.deadline.IsZero() && !w.deadline.Equal(w.armed) {
		w.armed = w.deadline
		if w.timer == nil {
			w.timer = time.AfterFunc(time.Until(w.deadline), w.ring)
		} else {
			w.timer.Reset(time.Until(w.deadline))
		}
	}
	w.count++
	w.cond.Wait()
	w.count--
}

// wake lets all look again who wait.
func (w *waiters) wake() {
	if w.count > 0 {
		w.cond.Broadcast()
	}
}

// ring is the timer's.
func (w *waiters) ring() {
	w.cond.L.Lock()
	defer w.cond.L.Unlock()
	w.armed = time.Time{}
	w.cond.Broadcast()
}
