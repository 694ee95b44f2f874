package eventlog

import (
	"context"
	"errors"
)

// Reader reads a log of single events forward, from any position, and goes on behind damage. Other
// forms are ErrForm, behind which it does not go. It opens a cursor when
// it needs one and not before: an open cursor holds memory and perhaps a file. One goroutine uses
// it at a time.
type Reader struct {
	open   func(ctx context.Context, at Position) (Cursor, error)
	cursor Cursor // nil: it is to be opened, at at
	at     Sequence
}

// NewReader makes one that begins at a number. Cursors are opened by open, as Partition.Cursor does
// it.
func NewReader(open func(ctx context.Context, at Position) (Cursor, error), at Sequence) *Reader {
	return &Reader{open: open, at: at}
}

// Seek goes on at a position. One beyond the end is the end.
func (r *Reader) Seek(ctx context.Context, at Position) error {
	r.Close()
	cursor, err := r.open(ctx, at)
	if ahead, ok := errors.AsType[*PositionError](err); ok {
		cursor, err = r.open(ctx, At(ahead.Last+1))
	}
	if err != nil {
		return err
	}
	r.cursor, r.at = EventsOnly(cursor), cursor.At()
	return nil
}

// Next gives a run without waiting, and moves past it; at the end one without events. Or it gives
// damage, behind which it has moved: what it would have read from damage.First to before
// damage.Next. Another error moves nothing.
func (r *Reader) Next(ctx context.Context) (run Run, damage *CorruptError, err error) {
	if r.cursor == nil {
		if err := r.Seek(ctx, At(r.at)); err != nil {
			return Run{}, nil, err
		}
	}
	run, err = r.cursor.TryNext(ctx)
	if err == nil {
		r.at = r.cursor.At()
		return run, nil, nil
	}
	r.Close()
	if corrupt, ok := errors.AsType[*CorruptError](err); ok && corrupt.Next > r.at {
		passed := *corrupt
		passed.First = max(passed.First, r.at)
		r.at = passed.Next
		return Run{}, &passed, nil
	}
	return Run{}, nil, err
}

// At is the number that comes next. After Close it stays.
func (r *Reader) At() Sequence { return r.at }

// MoveTo goes on at a number.
func (r *Reader) MoveTo(at Sequence) {
	if at != r.at {
		r.Close()
		r.at = at
	}
}

// Close frees the cursor. Who goes on reading opens another.
func (r *Reader) Close() {
	if r.cursor != nil {
		_ = r.cursor.Close() // it has nothing to lose
		r.cursor = nil
	}
}
