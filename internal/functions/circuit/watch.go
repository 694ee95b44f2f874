package circuit

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/processor"
)

const (
	firstWatchPause = time.Second
	mostWatchPause  = 30 * time.Second
)

// subscribe has the store report changes without a goroutine of ours; false: it cannot, or not now.
func (l *loop) subscribe(ctx context.Context) bool {
	s, ok := l.m.cfg.Store.(processor.Subscriber)
	if !ok {
		return false
	}
	err := s.Subscribe(ctx, l.m.cfg.Group, func() {
		select {
		case l.reported <- struct{}{}:
		default:
		}
	})
	if err == nil {
		l.setWatched(true)
	}
	return err == nil
}

// watch lets the store tell of changes, where it can, until ctx ends. When it cannot go on it is
// started again after a while, and the store is polled meanwhile.
func (l *loop) watch(ctx context.Context) {
	w, ok := l.m.cfg.Store.(processor.Watcher)
	if !ok {
		return
	}
	for pause := firstWatchPause; ; pause = min(2*pause, mostWatchPause) {
		began := time.Now()
		err := w.Watch(ctx, l.m.cfg.Group, func() { l.setWatched(true) }, l.reported)
		l.setWatched(false)
		if ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported) {
			return
		}
		l.m.cfg.Log.Debug("the store cannot be watched, it is polled for now", "error", err)
		if time.Since(began) > mostWatchPause {
			pause = firstWatchPause
		}
		if sleep.For(ctx, pause, nil) != nil {
			return
		}
	}
}

// setWatched has the entries read, too: what changed before is not told.
func (l *loop) setWatched(is bool) {
	l.watched.Store(is)
	l.turns.Add(1)
	select {
	case l.watches <- struct{}{}:
	default:
	}
}
