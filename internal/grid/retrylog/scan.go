package retrylog

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// countAll counts what was in the retry logs when they were opened. What is put later is counted by
// who puts it. Retry logs that cannot be read hold up none of the others.
func (t *Logs) countAll(ctx context.Context) {
	left := slices.DeleteFunc(slices.Clone(t.logs), func(r *retryLog) bool { return !r.used.Load() })
	for wait := firstPause; ; wait = min(2*wait, maxPause) {
		left = slices.DeleteFunc(left, func(r *retryLog) bool {
			err := r.countOld(ctx)
			if over := err == nil || errors.Is(err, eventlog.ErrClosed); over || ctx.Err() != nil {
				return over
			}
			t.log.Warn("retry log cannot be counted, it is tried again", "wait", r.wait, "error", err)
			return false
		})
		if len(left) == 0 || ctx.Err() != nil {
			return
		}
		sleep.For(ctx, wait, nil)
	}
}

// countOld counts one retry log, from where the count was when it was last given up.
func (r *retryLog) countOld(ctx context.Context) error {
	part, err := r.open(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	from := eventlog.NewReader(part.Cursor, eventlog.Sequence(r.scanned))
	end := r.scanEnd
	r.mu.Unlock()
	defer from.Close()
	for int64(from.At()) < end {
		run, damage, err := from.Next(ctx)
		if err != nil {
			return err
		}
		if damage != nil {
			continue // who reads it for good reports it
		}
		if len(run.Events) == 0 {
			break
		}
		r.countRun(run)
	}
	r.mu.Lock()
	r.scanned, r.keep = max(end, r.scanned), math.MaxInt64
	r.mu.Unlock()
	return r.trim(ctx)
}

// countRun counts those of a run that are not done.
func (r *retryLog) countRun(run eventlog.Run) {
	all := make([]pending.Delivery, len(run.Events))
	for i := range run.Events {
		// Who reads it for good reports damage. Where there is none, Event is not nil.
		all[i], _ = pending.Parse(run.Events[i].Message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range all {
		number := int64(run.First) + int64(i)
		if number < r.scanned || number >= r.scanEnd || all[i].Event == nil {
			continue
		}
		if number >= r.mark.Next() || r.mark.Has(number) {
			r.t.counts.add(&all[i], r.position, 1)
		}
	}
	r.scanned = max(r.scanned, min(int64(run.Next()), r.scanEnd))
	r.keep = r.scanned
}
