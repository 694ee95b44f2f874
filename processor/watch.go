package processor

import (
	"context"
	"errors"
	"time"
)

// subscribe has the store report changes without a goroutine of ours; false: it cannot, or not now.
func (in *instance) subscribe(ctx context.Context, changed chan<- struct{}) bool {
	s, ok := in.store.(Subscriber)
	if !ok {
		return false
	}
	err := s.Subscribe(ctx, in.group, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	return err == nil
}

// watch lets the store tell of changes, where it can, until ctx ends. When it cannot go on it is
// started again; whatever was missed meanwhile the round after that sees.
func (in *instance) watch(ctx context.Context, changed chan<- struct{}) {
	w, ok := in.store.(Watcher)
	if !ok {
		return
	}
	for failures := 1; ; failures++ {
		began := time.Now()
		err := w.Watch(ctx, in.group, in.wake, changed)
		if ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported) {
			return
		}
		if err != nil {
			in.report("watch the store", err)
		}
		if time.Since(began) > in.cfg.Lease {
			failures = 1
		}
		if sleep(ctx, in.cfg.Backoff.delay(failures)) != nil {
			return
		}
	}
}
