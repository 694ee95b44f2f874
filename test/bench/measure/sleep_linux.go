package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// SleepUntil waits in the kernel: the runtime's own timers, where nothing else keeps the
// process awake, are as coarse as a millisecond.
func SleepUntil(t time.Time) {
	for wait := time.Until(t); wait > 0; wait = time.Until(t) {
		left := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&left, nil) // interrupted: the loop sees to it
	}
}
