package v1

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Bounds of one search: whoever asks can go on.
const (
	maxLooked      = 10_000
	maxLookedBytes = 64 << 20
	maxLookTime    = 2 * time.Second
	lookStep       = 1_000
)

// look is a search in one partition, backwards from before, in steps that are read forwards.
type look struct {
	first int64 // the oldest that is kept
	until time.Time

	looked admin.Looked
	bytes  int
}

// newLook begins a search before a number.
func newLook(first, before int64, now time.Time) *look {
	return &look{first: first, until: now.Add(maxLookTime), looked: admin.Looked{First: before, Next: before}}
}

func (l *look) over(now time.Time) bool {
	return l.looked.First <= l.first || l.looked.Events >= maxLooked || l.bytes >= maxLookedBytes || !now.Before(l.until)
}

// backwards gives each event of the window to take, a step after the other: within one in order.
func (l *look) backwards(ctx context.Context, open func(context.Context, eventlog.Position) (eventlog.Cursor, error), take func(run eventlog.Run, i int)) error {
	for !l.over(time.Now()) {
		begin := max(l.first, l.looked.First-lookStep)
		if err := l.step(ctx, open, begin, l.looked.First, take); err != nil {
			return err
		}
		l.looked.First = begin
	}
	if l.looked.First > l.first {
		l.looked.Before = new(l.looked.First)
	}
	return nil
}

func (l *look) step(ctx context.Context, open func(context.Context, eventlog.Position) (eventlog.Cursor, error), begin, end int64, take func(run eventlog.Run, i int)) error {
	from := eventlog.NewReader(open, eventlog.Sequence(begin))
	defer from.Close()
	for int64(from.At()) < end {
		run, damage, err := from.Next(ctx)
		if damage != nil {
			continue // what cannot be read is not found
		}
		if err != nil || len(run.Events) == 0 {
			return err
		}
		for i := range run.Events {
			if n := int64(run.First) + int64(i); n < begin || n >= end {
				continue
			}
			l.looked.Events++
			l.bytes += len(run.Events[i].Message)
			l.note(run.Time)
			take(run, i)
		}
	}
	return nil
}

func (l *look) note(at time.Time) {
	if l.looked.From == nil || at.Before(*l.looked.From) {
		l.looked.From = spec.TimeIfAny(at)
	}
	if l.looked.To == nil || at.After(*l.looked.To) {
		l.looked.To = spec.TimeIfAny(at)
	}
}
