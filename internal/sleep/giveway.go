package sleep

import (
	"runtime"
	"time"
)

const (
	// giveWayAtMost bounds the wait where the processors are busy with other things: less than any
	// storage needs to make something durable.
	giveWayAtMost = 150 * time.Microsecond
	// giveWayIdle is how often others run without the count growing by it.
	giveWayIdle = 3
)

// GiveWay lets goroutines run that can, as long as the count grows by it and is below enough. It is
// for those who do something once for all who have come, and know that others are about to: whose
// answers were just given. Where nobody comes it takes as long as they run, and 150 µs at most.
func GiveWay(enough int, count func() int) {
	began, n := time.Now(), count()
	for idle := 0; n < enough && idle < giveWayIdle && time.Since(began) < giveWayAtMost; {
		runtime.Gosched()
		idle++
		if now := count(); now != n {
			n, idle = now, 0
		}
	}
}
