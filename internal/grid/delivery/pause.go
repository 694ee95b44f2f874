package delivery

import (
	"context"
	"time"
)

// How long is waited before something that failed (storage, mostly) is tried again: longer
// each time in a row.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// pause waits, and tells whether it was not interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
