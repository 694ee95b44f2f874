//go:build !linux

package measure

import "time"

// SleepUntil is as exact as the runtime's timers.
func SleepUntil(t time.Time) { time.Sleep(time.Until(t)) }
