package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Importer is a partition that can take over what another engine holds, with numbers, times and
// producers as they are. A partition need not be one. Nobody else appends to it meanwhile. What was
// interrupted goes on where the Sealed bounds end.
type Importer interface {
	// BeginAt makes a partition that never had an event begin at a number: those below count as given
	// and removed, the newest of them at a time, which may be zero where it is not known. It is as
	// durable as the engine promises when it returns. At 0 there is nothing to do.
	//
	// It refuses one that has had events, or began already, and may do so with ErrUsed where there is no event. Other
	// errors are those of Submit; after them it may have been done or not, as the bounds tell.
	BeginAt(ctx context.Context, first Sequence, newest time.Time) error

	// Import is Submit of a whole run, as a cursor gave it: its events get the run's numbers and time.
	// It refuses a run that does not begin with the next number, or is older than the one before; see
	// CheckImport. Otherwise all is as with Submit.
	Import(ctx context.Context, run Run) (Receipt, error)
}

// ErrUsed: a partition cannot begin at a number, for it was used before, though it has no event.
var ErrUsed = errors.New("the partition was used before")

// errImport: the partition does not take what was to be imported. Nothing was stored.
var errImport = errors.New("it cannot be imported")

// CheckImport says why a run cannot be stored in a partition that goes on at next, and whose newest
// event is of a time; nil: it can.
func CheckImport(next Sequence, newest time.Time, run Run) error {
	switch {
	case run.Skip > 0:
		return fmt.Errorf("%w: event %d is inside a frame, which comes whole or not at all", errImport, run.First)
	case run.First > next:
		return fmt.Errorf("%w: event %d leaves a gap behind %d", errImport, run.First, next-1)
	case run.First < next:
		return fmt.Errorf("%w: event %d is there, the next is %d", errImport, run.First, next)
	case run.Time.Before(newest):
		return fmt.Errorf("%w: event %d of %v is older than the one before, of %v", errImport, run.First, run.Time, newest)
	}
	return nil
}

// CheckBegin says why a partition with such bounds cannot begin at a number; nil: it can.
func CheckBegin(b Bounds, first Sequence) error {
	switch {
	case first < 0:
		return fmt.Errorf("%w: %d is no number of an event", errImport, first)
	case b.Next > 0:
		return fmt.Errorf("%w: the partition cannot begin at %d, its next number is %d", errImport, first, b.Next)
	}
	return nil
}

// CheckSkip says why a partition with such bounds cannot go on at a number; nil: it can.
func CheckSkip(b Bounds, next Sequence) error {
	switch {
	case b.Empty():
		return fmt.Errorf("%w: there is no event before those that are left out", errImport)
	case next <= b.Next:
		return fmt.Errorf("%w: the next number is %d", errImport, b.Next)
	}
	return nil
}

// importsAtOnce is how many runs Copy has under way: they share the storage's syncs.
const importsAtOnce = 64

// Copy imports what one partition holds into another, which is empty, or holds the beginning of it
// from an earlier call: then it goes on behind that. Nobody appends to either. It gives how many
// events it has stored; after an error the same call goes on. Events that cannot be read end it with
// a *CorruptError: the other partition would have no such numbers.
func Copy(ctx context.Context, from, to Partition) (stored int64, err error) {
	importer, ok := to.(Importer)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	source, err := from.Sealed(ctx)
	if err != nil {
		return 0, err
	}
	target, err := to.Sealed(ctx)
	if err != nil {
		return 0, err
	}
	if target.Next == 0 && source.First > 0 {
		var newest time.Time // of what was removed it is not known, but where that is all
		if source.Empty() {
			newest = source.LastTime
		}
		if err := importer.BeginAt(ctx, source.First, newest); err != nil {
			return 0, err
		}
		target.Next = source.First
	}
	switch {
	case target.Next > source.Next:
		return 0, fmt.Errorf("%w: the partition has events up to %d, what is to be copied ends with %d", errImport, target.Last(), source.Last())
	case target.Next < source.First:
		return 0, fmt.Errorf("%w: the partition ends with event %d, the next that is kept is %d", errImport, target.Last(), source.First)
	}
	return copyRuns(ctx, from, importer, target.Next, source.Next)
}

func copyRuns(ctx context.Context, from Partition, to Importer, at, end Sequence) (stored int64, err error) {
	if at == end {
		return 0, nil
	}
	cursor, err := from.Cursor(ctx, At(at))
	if err != nil {
		return 0, err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	var under []Receipt
	var counts []int64
	settle := func(leave int) error {
		for len(under) > leave {
			_, failed := under[0].Wait(ctx)
			if err == nil {
				err = failed
			}
			if failed == nil {
				stored += counts[0]
			}
			under, counts = under[1:], counts[1:]
		}
		return err
	}
	for cursor.At() < end && settle(importsAtOnce-1) == nil {
		run, failed := cursor.TryNext(ctx)
		if failed == nil && run.Len() == 0 {
			break
		}
		var receipt Receipt
		if failed == nil {
			receipt, failed = to.Import(ctx, run)
		}
		if failed != nil {
			err = failed
			break
		}
		under, counts = append(under, receipt), append(counts, int64(run.Len()))
	}
	err = settle(0)
	return stored, err
}
