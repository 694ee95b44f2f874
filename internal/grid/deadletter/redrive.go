package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// redriveBytes is about how large letters may be that are delivered and marked together, and
// defaultRate how many a second there are if nobody says.
const (
	redriveBytes = 4 << 20
	defaultRate  = 1000
)

// RedriveTo says who delivers what is redriven: deliver stores it, durably when it returns nil.
// Delivery needs the dead letters before it is there itself, so it is set here, before the first
// Redrive.
func (s *Service) RedriveTo(deliver func(ctx context.Context, deliveries []pending.Delivery) error) {
	s.deliver = deliver
}

// Redrive sends chosen letters to their subscription again, and to nobody else: with attempts at
// zero, a new time to live and one more redrive. Those that were redriven too often are skipped
// unless forced.
//
// It is one round, of no more than setaside.Round letters, and says where to go on. Those that die
// of it meanwhile are left out, or an endpoint that is still down would get each of them until it
// has come back too often. One caller at a time redrives the letters of a subscription; a second
// one waits, and finds what is left.
func (s *Service) Redrive(ctx context.Context, subscription string, q Query, o RedriveOptions) (Redriven, error) {
	if now := time.Now(); q.Until.IsZero() || q.Until.After(now) {
		q.Until = now
	}
	done := Redriven{Until: q.Until}
	b, err := s.box(subscription)
	if err != nil || b == nil {
		return done, err
	}
	if err := s.redrive(ctx, b, q, o, &done); err != nil {
		return done, fmt.Errorf("redrive dead letters: %w", err)
	}
	return done, nil
}

func (s *Service) redrive(ctx context.Context, b *box, q Query, o RedriveOptions, done *Redriven) error {
	perSecond := cmp.Or(max(o.Rate, 0), defaultRate)
	if o.Dry {
		perSecond = 0
	} else {
		if s.deliver == nil {
			return errors.New("nobody delivers here")
		}
		give, err := b.redriving.Take(ctx)
		if err != nil {
			return err
		}
		defer give()
	}
	send := func(ctx context.Context, batch []Letter) error {
		if !o.Dry {
			deliveries, numbers := make([]pending.Delivery, len(batch)), make([]int64, len(batch))
			for i := range batch {
				deliveries[i], numbers[i] = batch[i].anew(), batch[i].Number
			}
			if err := s.deliver(ctx, deliveries); err != nil {
				return err
			}
			err := b.change(func() error { return b.book.Redriven(ctx, numbers, time.Now().UnixMilli()) })
			if err != nil {
				return err
			}
		}
		done.Count += len(batch)
		return nil
	}
	out := setaside.NewRedrive(perSecond, redriveBytes, send)
	limit, seen := setaside.Round(q.Limit, o.Rate), 0
	var failed error
	next, err := b.scan(ctx, q, 0, func(l Letter) bool {
		if l.Redrives >= s.cfg.MaxRedrives && !o.Force {
			done.Skipped++
		} else {
			failed = out.Add(ctx, l.kept(), len(l.Event))
		}
		seen++
		return failed == nil && seen < limit
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	if err := out.Flush(ctx); err != nil {
		return err
	}
	done.Next = next
	if o.Dry {
		return nil
	}
	return b.tidy(ctx)
}

// anew is the letter as it is delivered again.
func (l *Letter) anew() pending.Delivery {
	p := l.Delivery
	p.Alive = time.Now().UTC().Truncate(time.Millisecond)
	p.Attempts, p.LastAttempt, p.LastOutcome, p.LastStatus = 0, time.Time{}, "", 0
	p.Due, p.Reason = time.Time{}, ""
	p.Hops = 0 // whoever redrives what went round has ended the loop, or it ends again
	p.Redrives++
	return p
}

// Purge forgets chosen letters for good, and gives how many. Those that were not written to their
// target yet never are.
func (s *Service) Purge(ctx context.Context, subscription string, q Query) (int, error) {
	b, err := s.box(subscription)
	if err != nil || b == nil {
		return 0, err
	}
	var numbers []int64
	_, err = b.scan(ctx, q, 0, func(l Letter) bool {
		numbers = append(numbers, l.Number)
		return q.Limit == 0 || len(numbers) < q.Limit
	})
	if err == nil {
		err = b.change(func() error { return b.book.Purge(ctx, numbers) })
	}
	if err == nil {
		err = b.tidy(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("purge dead letters: %w", err)
	}
	return len(numbers), nil
}

// tidy frees the room of the oldest letters, if they were purged, and that of marks of letters that
// the log does not hold any more.
func (b *box) tidy(ctx context.Context) error {
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return err
	}
	first := int64(bounds.First)
	if kept := b.book.Marks().FirstKept(first); kept > first {
		if err := b.log.Trim(ctx, eventlog.Sequence(kept)); err != nil {
			return err
		}
	}
	return b.change(func() error { return b.book.Prune(ctx, first) })
}
