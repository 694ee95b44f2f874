package pipe

import (
	"os"
	"time"
)

// errDeadline is what a net.Conn says when a deadline has passed.
var errDeadline = os.ErrDeadlineExceeded

// set moves the deadline. Who waits looks at it.
func (w *waiters) set(t time.Time) {
	w.deadline = t
	w.wake()
}

func (w *waiters) expired() bool {
	return !w.deadline.IsZero() && !time.Now().Before(w.deadline)
}

// wait returns after wake was called, or the deadline has passed, or for no reason.
func (w *waiters) wait() {
	w.arm()
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

// arm has who waits woken when the deadline has passed. A timer that is set for an earlier
// deadline is moved; it does no harm if it goes off.
func (w *waiters) arm() {
	if w.deadline.IsZero() || w.deadline.Equal(w.armed) {
		return
	}
	w.armed = w.deadline
	if w.timer == nil {
		w.timer = time.AfterFunc(time.Until(w.deadline), w.ring)
		return
	}
	w.timer.Reset(time.Until(w.deadline))
}

// ring is the timer's.
func (w *waiters) ring() {
	w.cond.L.Lock()
	defer w.cond.L.Unlock()
	w.armed = time.Time{}
	w.cond.Broadcast()
}

// rest stops the timer for good.
func (w *waiters) rest() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
