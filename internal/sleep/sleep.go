// Package sleep waits for a time, unless something else happens first.
package sleep

import (
	"context"
	"math/rand/v2"
	"time"
)

// For waits for d, or until something comes from wake, which may be nil. It returns ctx's cause if
// ctx ends first.
func For(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// About waits between d/2 and d, so that those who collided do not collide again.
func About(ctx context.Context, d time.Duration) error { return For(ctx, d/2+rand.N(d/2+1), nil) }
