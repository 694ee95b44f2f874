package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// errDiffers: the target does not give back what was stored in it.
var errDiffers = errors.New("what was stored is not what is read back")

// runSum is a hash of runs, with their numbers, times, producers and events.
type runSum struct {
	hash   hash.Hash
	events int64
	buf    []byte
}

func (s *runSum) add(run eventlog.Run) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.buf = archive.AppendRun(s.buf[:0], run)
	s.hash.Write(s.buf)
	s.events += int64(run.Len())
}

func (s *runSum) same(other *runSum) bool {
	if s.hash == nil || other.hash == nil {
		return s.hash == nil && other.hash == nil
	}
	return s.events == other.events && string(s.hash.Sum(nil)) == string(other.hash.Sum(nil))
}

// readBack compares the partitions of the target with what was stored in them: bounds, number of events,
// and their hash.
func (s *restoring) readBack(ctx context.Context) error {
	for _, i := range s.done {
		if err := i.compare(ctx); err != nil {
			return fmt.Errorf("check partition %d of log %s: %w", i.Number, i.name, err)
		}
	}
	return nil
}

func (i *importing) compare(ctx context.Context) error {
	b, err := patiently(ctx, func() (eventlog.Bounds, error) { return i.log.Sealed(ctx) })
	if err != nil {
		return err
	}
	if b.Next != i.Next {
		return fmt.Errorf("%w: it goes on at %d instead of %d", errDiffers, b.Next, i.Next)
	}
	var sum runSum
	for at := max(b.First, i.First); at < b.Next; { // it begins later where the first numbers are lost
		_, err = patiently(ctx, func() (_ int, err error) {
			at, err = readRuns(ctx, i.log, at, b.Next, &sum)
			return 0, err
		})
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if ok && damage.Next > at { // numbers that are lost are so here, too
			at, err = damage.Next, nil
		}
		if err != nil {
			return err
		}
	}
	if !sum.same(i.sum) {
		return fmt.Errorf("%w: %d events were stored, %d are there, or others", errDiffers, i.sum.events, sum.events)
	}
	return nil
}

// readRuns adds runs to a sum, and gives where it has come to.
func readRuns(ctx context.Context, p eventlog.Partition, at, end eventlog.Sequence, to *runSum) (eventlog.Sequence, error) {
	cursor, err := p.Cursor(ctx, eventlog.At(at))
	if err != nil {
		return at, err
	}
	defer func() { _ = cursor.Close() }() // it was only read
	for cursor.At() < end {
		run, err := cursor.Next(ctx)
		if err != nil {
			return cursor.At(), err
		}
		to.add(run)
	}
	return end, nil
}
