package deadletter

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// redriveBatch is how many letters are delivered and marked together at most, redriveBytes about how large
// they may be, and defaultRate how many a second there are if nobody says.
const (
	redriveBatch = 100
	redriveBytes = 4 << 20
	defaultRate  = 1000
)

// Redrive sends chosen letters to their subscription again, and to nobody else: it gives them to
// Deliver, which stores them, with attempts at zero, a new time to live and one more redrive, and
// marks them. Those that were redriven too often are skipped unless forced.
func (s *Service) Redrive(ctx context.Context, subscription string, q Query, o RedriveOptions) (Redriven, error) {
	b := s.box(subscription)
	if b == nil {
		return Redriven{}, nil
	}
	r := newRedrive(b, o, s.cfg.MaxRedrives)
	seen := 0
	next, err := b.scan(ctx, q, 0, func(l Letter) bool {
		r.add(ctx, l)
		seen++
		return r.failed == nil && (q.Limit == 0 || seen < q.Limit)
	})
	if err == nil {
		err = r.failed
	}
	if err == nil {
		err = r.flush(ctx)
	}
	if err == nil && !o.Dry {
		err = b.tidy(ctx)
	}
	if err != nil {
		return r.done, fmt.Errorf("redrive dead letters: %w", err)
	}
	r.done.Next = next
	return r.done, nil
}

// redrive is one under way.
type redrive struct {
	box     *box
	options RedriveOptions
	most    int
	// batch is how many go together: no more than may go in a second.
	batch int
	limit *rate.Limiter

	deliveries []pending.Delivery
	numbers    []int64
	bytes      int
	done       Redriven
	failed     error
}

func newRedrive(b *box, o RedriveOptions, most int) *redrive {
	perSecond := o.Rate
	if perSecond <= 0 {
		perSecond = defaultRate
	}
	batch := int(max(1, min(perSecond, redriveBatch)))
	return &redrive{box: b, options: o, most: most, batch: batch, limit: rate.NewLimiter(rate.Limit(perSecond), batch)}
}

func (r *redrive) add(ctx context.Context, l Letter) {
	if l.Redrives >= r.most && !r.options.Force {
		r.done.Skipped++
		return
	}
	p := l.kept().Delivery
	p.Alive = time.Now().UTC().Truncate(time.Millisecond)
	p.Attempts, p.LastAttempt, p.LastOutcome, p.LastStatus = 0, time.Time{}, "", 0
	p.Due, p.Reason = time.Time{}, ""
	p.Redrives++
	r.deliveries, r.numbers, r.bytes = append(r.deliveries, p), append(r.numbers, l.Number), r.bytes+len(p.Event)
	if len(r.deliveries) >= r.batch || r.bytes >= redriveBytes {
		r.failed = r.flush(ctx)
	}
}

// flush delivers what is gathered, then marks it: after a crash between the two it is redriven
// twice, never not at all.
func (r *redrive) flush(ctx context.Context) error {
	if len(r.deliveries) == 0 {
		return nil
	}
	if !r.options.Dry {
		if err := r.limit.WaitN(ctx, len(r.deliveries)); err != nil {
			return err
		}
		if err := r.options.Deliver(ctx, r.deliveries); err != nil {
			return err
		}
		if err := r.box.mark(ctx, r.numbers, redriven(time.Now().UnixMilli())); err != nil {
			return err
		}
	}
	r.done.Count += len(r.deliveries)
	if r.options.Progress != nil {
		r.options.Progress(r.done.Count)
	}
	r.deliveries, r.numbers, r.bytes = nil, nil, 0
	return nil
}

// Purge forgets chosen letters for good, and tells how many. Those that were not written to their
// place yet never are.
func (s *Service) Purge(ctx context.Context, subscription string, q Query) (int, error) {
	b := s.box(subscription)
	if b == nil {
		return 0, nil
	}
	var numbers []int64
	if _, err := b.scan(ctx, q, 0, func(l Letter) bool {
		numbers = append(numbers, l.Number)
		return q.Limit == 0 || len(numbers) < q.Limit
	}); err != nil {
		return 0, fmt.Errorf("purge dead letters: %w", err)
	}
	err := b.mark(ctx, numbers, purged)
	if err == nil {
		err = b.tidy(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("purge dead letters: %w", err)
	}
	return len(numbers), nil
}

// tidy frees the room of the oldest letters, if they were purged, and that of marks of letters that the
// log does not hold any more.
func (b *box) tidy(ctx context.Context) error {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return err
	}
	first := int64(bounds.First)
	if kept := b.marked().firstKept(first); kept > first {
		if err := b.log.Trim(ctx, eventlog.Sequence(kept)); err != nil {
			return err
		}
	}
	return b.prune(ctx, first)
}
