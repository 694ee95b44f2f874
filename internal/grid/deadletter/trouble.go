package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// troubled notes that nothing can be written at present. If that is because the target has been out
// of reach for too long, letters are given up (G8). Troubles of the yard's own storage cost no
// letter.
func (s *Service) troubled(ctx context.Context, b *box, sub *topics.Subscription, err error) {
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	first := b.trouble == ""
	b.trouble = err.Error()
	st := b.state.Value
	b.mu.Unlock()
	if first {
		s.cfg.Log.Warn("dead letters cannot be written to their target",
			"subscription", sub.Name, "target", sub.DeadLetter.Kind, "error", err)
	}
	if !errors.As(err, new(targetError)) {
		return
	}
	now, target := time.Now().UTC(), sub.DeadLetter.String()
	if st.Since.IsZero() || st.Target != target {
		if err := b.changeState(ctx, func(st *state) { st.Since, st.Target = now, target }); err != nil {
			s.cfg.Log.Warn("cannot note that a target is out of reach", "subscription", sub.Name, "error", err)
		}
		return
	}
	if now.Sub(st.Since) >= s.cfg.GiveUp {
		s.giveUp(ctx, b, sub, now)
	}
}

// giveUp passes letters that have waited long enough by themselves; the yard still has them.
func (s *Service) giveUp(ctx context.Context, b *box, sub *topics.Subscription, now time.Time) {
	first, next, err := b.olderThan(ctx, now.Add(-s.cfg.GiveUp))
	if err == nil && next > first {
		err = b.changeState(ctx, func(st *state) { st.Written = max(st.Written, next) })
	}
	if err != nil {
		s.cfg.Log.Warn("cannot give up dead letters", "subscription", sub.Name, "error", err)
		return
	}
	count := b.book.Marks().Kept(first, next)
	if count <= 0 {
		return
	}
	b.drop(count)
	s.metrics.givenUp.WithLabelValues(sub.DeadLetter.Kind).Add(float64(count))
	s.cfg.Log.Error("dead letters were not written: their target was out of reach for too long; the yard still lists them",
		"subscription", sub.Name, "letters", count, "after", s.cfg.GiveUp)
}

// olderThan are the waiting letters that died at a time or before: from first up to next.
func (b *box) olderThan(ctx context.Context, at time.Time) (first, next int64, err error) {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return 0, 0, err
	}
	cursor, err := b.log.Cursor(ctx, eventlog.Since(at.Add(time.Millisecond)))
	if err != nil {
		return 0, 0, err
	}
	defer cursor.Close()
	return max(b.reached(), int64(bounds.First)), int64(cursor.At()), nil
}

func (b *box) drop(count int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped += count
}
