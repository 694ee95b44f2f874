package retrylog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// What is handed out at once.
	batchEntries = 1000
	batchBytes   = 1 << 20
	// maxSleep is how long Run sleeps at most: the clock may have been set meanwhile. After as
	// long it looks for what a Put has left in doubt.
	maxSleep = time.Minute
	// saveEvery is how often cursors are saved while they move; after an error it is longer.
	saveEvery = time.Second
	// lastSave is how long saving at the end may take.
	lastSave = 5 * time.Second
)

// Run hands out what falls due, in order of due times (as far as the bounded look-ahead sees and
// the clock was not set), in batches, until ctx ends; cursors are saved at most once a second and
// when it ends. take must dispose of the entries quickly: to memory, or to a parked log. One call
// at a time.
//
// It carries on whatever the storage does, and gives an error only where that was closed, or where the
// shard that the logs are of has another holder: shards.ErrLost.
func (t *Logs) Run(ctx context.Context, take func(ctx context.Context, due []Entry)) error {
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("run retry logs: they run already")
	}
	defer t.running.Store(false)
	t.metrics.runs(t, true)
	defer t.metrics.runs(t, false)
	inner, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	var lost error // set before others have ended
	others.Go(func() { t.countAll(inner) })
	others.Go(func() {
		if lost = t.saveWhileMoving(inner); lost != nil {
			cancel()
		}
	})
	err := t.handOut(inner, take)
	cancel()
	others.Wait()
	if lost != nil {
		return fmt.Errorf("run retry logs: %w", lost)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
	defer cancel()
	if err := t.Save(last); err != nil {
		t.log.Warn("cursors of waiting events not saved at the end: some are handed out again", "error", err)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("run retry logs: %w", err)
	}
	return nil
}

func (t *Logs) handOut(ctx context.Context, take func(ctx context.Context, due []Entry)) error {
	for ctx.Err() == nil {
		due, err := t.due(ctx, t.look())
		if len(due) > 0 {
			take(ctx, due)
		}
		if err != nil {
			return err
		}
		if len(due) == 0 {
			now := t.now().Round(0)
			until := now.Add(maxSleep)
			for _, r := range t.logs {
				if next := r.next(); next.Before(until) {
					until = next
				}
			}
			sleep.For(ctx, until.Sub(now), t.wake)
		}
	}
	return nil
}

// look gives the time, and has everything timed anew where the clock was set back.
func (t *Logs) look() time.Time {
	now := t.now().Round(0) // as the stored times are: how long this process runs tells nothing of them
	if back := t.seen.Sub(now); back > 0 {
		if back > time.Minute {
			t.log.Warn("clock was set back, waiting events are timed anew", "by", back)
		}
		for _, r := range t.logs {
			r.retime(now)
		}
	}
	t.seen = now
	return now
}

// due gathers what is due, up to a batch. With an error there may be some as well.
func (t *Logs) due(ctx context.Context, now time.Time) ([]Entry, error) {
	for _, r := range t.logs {
		if err := r.read(ctx, now); err != nil {
			return nil, err
		}
	}
	var batch []Entry
	for size := 0; len(batch) < batchEntries && size < batchBytes; {
		r := t.nextDue(now)
		if r == nil {
			break
		}
		h := r.ahead.pop()
		batch = append(batch, h.entry())
		size += h.size
		if err := r.read(ctx, now); err != nil { // there may be room now
			return batch, err
		}
	}
	t.metrics.due.Add(float64(len(batch)))
	return batch, nil
}

// nextDue is the retry log that has what is due before all else; nil if nothing is.
func (t *Logs) nextDue(now time.Time) (best *retryLog) {
	first := now
	for _, r := range t.logs {
		if due, some := r.ahead.due(); some && !due.After(first) && (best == nil || due.Before(first)) {
			best, first = r, due
		}
	}
	return best
}

// saveWhileMoving saves cursors when they move, and then not for a while. Its error is
// shards.ErrLost.
func (t *Logs) saveWhileMoving(ctx context.Context) error {
	wait := saveEvery
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.dirty:
		}
		if err := t.Save(ctx); err == nil {
			wait = saveEvery
		} else if errors.Is(err, shards.ErrLost) {
			return err
		} else if ctx.Err() == nil {
			wait = min(2*wait, maxPause)
			t.log.Warn("cursors of waiting events not saved, they are tried again", "in", wait, "error", err)
			signal(t.dirty)
		}
		sleep.For(ctx, wait, nil)
	}
}

// Save stores now how far everything is done, and lets go of the storage of what is. Run does
// it in time; it is for those whose entries are done after Run has ended.
func (t *Logs) Save(ctx context.Context) error {
	var errs []error
	for _, b := range t.books.all() {
		moved, err := b.save(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, q := range moved {
			err := q.trim(ctx)
			if err != nil && !errors.Is(err, eventlog.ErrRemoved) && !errors.Is(err, eventlog.ErrClosed) {
				errs = append(errs, fmt.Errorf("trim %s: %w", q.id, err))
			}
		}
	}
	return errors.Join(errs...)
}
