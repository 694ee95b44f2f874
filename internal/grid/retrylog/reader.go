package retrylog

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// reader reads a queue's log from a place on, for a while. It is made for each while anew: an
// open cursor holds memory and perhaps a file, and most queues have nothing to read for long.
type reader struct {
	part     eventlog.Partition
	position int64
	// damaged is told of what cannot be read; nil: nobody is.
	damaged func(first, next int64, err error)
	cursor  eventlog.Cursor
}

// next gives the next run, without events at the end. What is damaged is passed.
func (r *reader) next(ctx context.Context) (eventlog.Run, error) {
	for {
		run, err := r.tryNext(ctx)
		if err == nil {
			return run, nil
		}
		r.close()
		if !r.pass(err) {
			return eventlog.Run{}, err
		}
	}
}

func (r *reader) tryNext(ctx context.Context) (eventlog.Run, error) {
	if r.cursor == nil {
		cursor, err := r.part.Cursor(ctx, eventlog.At(eventlog.Sequence(r.position)))
		if err != nil {
			return eventlog.Run{}, err
		}
		r.cursor = cursor
	}
	run, err := r.cursor.TryNext(ctx)
	if err == nil && len(run.Events) > 0 {
		r.position = int64(run.Next())
	}
	return run, err
}

// pass goes behind damage, where something may be behind it.
func (r *reader) pass(err error) bool {
	var corrupt *eventlog.CorruptError
	if !errors.As(err, &corrupt) || int64(corrupt.Next) <= r.position {
		return false
	}
	if r.damaged != nil {
		r.damaged(max(r.position, int64(corrupt.First)), int64(corrupt.Next), err)
	}
	r.position = int64(corrupt.Next)
	return true
}

// goTo makes it go on elsewhere, if it would not anyway.
func (r *reader) goTo(position int64) {
	if position != r.position {
		r.close()
		r.position = position
	}
}

// close frees the cursor; the reader goes on at its place when it is used again.
func (r *reader) close() {
	if r.cursor != nil {
		_ = r.cursor.Close() // it has nothing to lose
		r.cursor = nil
	}
}
