package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// How often a change begins anew because somebody else was faster, and how long it
// pauses before that. Together it is a few seconds: tries without a pause would all be
// spent while the other one, or a replicated store, is still at it.
const (
	maxTries   = 16
	firstPause = 5 * time.Millisecond
	maxPause   = 320 * time.Millisecond
)

// untilUncontested makes a change again and again until it ends in something else
// than a conflict. doing is for the error if it does not.
func untilUncontested(ctx context.Context, doing string, change func() error) error {
	for try := range maxTries {
		if err := change(); !errors.Is(err, meta.ErrConflict) {
			return err
		}
		if !pause(ctx, min(firstPause<<try, maxPause)) {
			break
		}
	}
	// Also where ctx has ended: its own error would say that the outcome is unknown,
	// and after a conflict nothing was changed.
	return fmt.Errorf("%s: others keep changing it: %w", doing, meta.ErrConflict)
}

// pause waits for about that long, so that those who met do not meet again. False
// means that ctx has ended.
func pause(ctx context.Context, about time.Duration) bool {
	timer := time.NewTimer(about/2 + rand.N(about/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
