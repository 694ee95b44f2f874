package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// partition copies a partition up to its end as of now. One that never had an event is left out.
func (t *taking) partition(ctx context.Context, log eventlog.Described, number int) error {
	p := t.partitions[eventlog.PartitionID{Log: log.Name, Number: number}]
	if p == nil {
		return nil // it was removed before anything was known of it
	}
	bounds, err := patiently(ctx, func() (eventlog.Bounds, error) { return p.Sealed(ctx) })
	removed := errors.Is(err, eventlog.ErrRemoved)
	if removed {
		bounds, err = p.Peek(), nil
	}
	if err != nil || bounds.Next == 0 {
		return err
	}
	item := begun(log, number)
	item.Partition.First, item.Partition.Next, item.Partition.LastMillis = bounds.First, bounds.Next, max(bounds.LastTime.UnixMilli(), 0)
	if err := t.w.Begin(item); err != nil {
		return err
	}
	s := &stretch{p: p, w: t.w, first: bounds.First, at: bounds.First, next: bounds.Next}
	if !removed {
		err = s.copy(ctx)
		removed = errors.Is(err, eventlog.ErrRemoved)
	}
	if removed {
		s.first, s.lost = bounds.Next, nil
	} else if err != nil {
		return err
	}
	return t.w.End(func(i *archive.Item) {
		i.Partition.First, i.Partition.Next, i.Partition.Lost, i.Partition.Removed = s.first, bounds.Next, s.lost, removed
		i.Partition.LastMillis = max(bounds.LastTime.UnixMilli(), 0)
	})
}

// stretch is a partition being copied.
type stretch struct {
	p eventlog.Partition
	w *archive.Writer
	// first is the oldest number that is not removed, at the next to be copied, next the end.
	first, at, next eventlog.Sequence
	lost            []archive.Lost
}

// copy goes on behind damage. Retention may overtake it: then what it has copied counts no more, since
// it is gone where it came from, and no log has a gap.
func (s *stretch) copy(ctx context.Context) error {
	for s.at < s.next {
		from := s.at
		_, err := patiently(ctx, func() (int, error) {
			err := s.runs(ctx)
			if s.at > from && errors.Is(err, eventlog.ErrUnavailable) {
				err = nil // it got on: patience begins anew
			}
			return 0, err
		})
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok {
			if err != nil {
				return err
			}
			continue
		}
		s.passed(damage.First)
		behind := min(damage.Next, s.next)
		if damage.Next == eventlog.NoSequence {
			behind = s.next
		}
		if behind <= s.at {
			return fmt.Errorf("no way behind the damage: %w", damage)
		}
		if len(s.lost) == archive.MaxLost {
			return fmt.Errorf("it is damaged in more than %d places: copy what can be read with eventyard read, and delete it: %w", archive.MaxLost, damage)
		}
		s.lost = append(s.lost, archive.Lost{First: s.at, Next: behind, Reason: damage.Where + ": " + damage.Reason})
		s.at = behind
	}
	return nil
}

// passed notes that retention has removed all below a number, if that is ahead.
func (s *stretch) passed(first eventlog.Sequence) {
	if first > s.at {
		s.first, s.lost = min(first, s.next), nil
		s.at = s.first
	}
}

// runs copies by one cursor.
func (s *stretch) runs(ctx context.Context) error {
	cursor, err := s.p.Cursor(ctx, eventlog.At(s.at))
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	for s.at < s.next {
		run, err := cursor.TryNext(ctx)
		if err != nil {
			return err
		}
		if run.Len() == 0 { // it is on its way, or retention has taken all there was
			now, err := s.p.Bounds(ctx)
			if err != nil {
				return err
			}
			if s.passed(now.First); s.at >= s.next {
				return nil
			}
			if run, err = cursor.Next(ctx); err != nil {
				return err
			}
		}
		if s.passed(run.First); s.at >= s.next {
			return nil
		}
		if err := s.w.Run(run); err != nil {
			return err
		}
		s.at = run.Next()
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long storage is waited for that is out of reach. Servers have another leader after some
// seconds.
const patience = time.Minute

// patiently does something again while the storage is out of reach, for so long at most.
func patiently[T any](ctx context.Context, do func() (T, error)) (T, error) {
	for late := time.Now().Add(patience); ; {
		done, err := do()
		if !errors.Is(err, eventlog.ErrUnavailable) || time.Now().After(late) || sleep.About(ctx, time.Second) != nil {
			return done, err
		}
	}
}
