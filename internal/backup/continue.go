package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrOther: what an interrupted Restore has left is not a beginning of what is restored now. The target is
// to be emptied.
var ErrOther = errors.New("what was restored there before is of something else")

// Continued says how a target is filled on in which an interrupted Restore of the same source has left
// something. What is there is compared with the archive and stays; what is missing is added. Nothing of it
// has to be known: a partition goes on where it ends, entries are stored that are not there or differ, and
// those are removed that the archive does not have.
type Continued struct {
	// Local tells whether an entry belongs to the target, so that it stays as it is.
	Local func(key string) bool
	// Same tells whether two entries of one key say the same, however they are sealed.
	Same func(a, b meta.Entry) bool
	// Logs are the names of the logs of what is restored, so that a target which has another is found out before
	// anything is added to it, and not at the end; nil: they are not known.
	Logs []string
	// OpenBody reads the body of a blob; fs.ErrNotExist where there is none.
	OpenBody func(name string) (io.ReadCloser, error)
	// Found hears of events that were there already; nil means nobody.
	Found func(events int)
}

// left is what an interrupted call has left.
type left struct {
	entries map[string]meta.Entry         // those that the archive has not had yet
	seen    map[eventlog.PartitionID]bool // what the archive has had
}

// look finds out what is there.
func (s *restoring) look(ctx context.Context) error {
	if s.Continued == nil {
		return nil
	}
	s.left = left{entries: map[string]meta.Entry{}, seen: map[eventlog.PartitionID]bool{}}
	if err := s.noOtherLog(ctx); err != nil {
		return err
	}
	there, err := s.Meta.List(ctx, "")
	for _, e := range there {
		if !s.Continued.Local(e.Key) {
			s.left.entries[e.Key] = e
		}
	}
	return err
}

// noOtherLog wants no log to be there whose name the source does not have, as far as that is known.
func (s *restoring) noOtherLog(ctx context.Context) error {
	engine, ok := s.Log.(eventlog.Archivable)
	if !ok || s.Continued.Logs == nil {
		return nil
	}
	logs, err := patiently(ctx, func() ([]eventlog.Described, error) { return engine.Logs(ctx) })
	for _, log := range logs {
		if !slices.Contains(s.Continued.Logs, log.Name) {
			return fmt.Errorf("%w: it has a log %s", ErrOther, log.Name)
		}
	}
	return err
}

// takeEntry gives the revision of what is there in an entry's place, and whether that says the same.
func (s *restoring) takeEntry(e meta.Entry) (revision meta.Revision, same bool) {
	there, ok := s.left.entries[e.Key]
	if !ok {
		return 0, false
	}
	delete(s.left.entries, e.Key)
	return there.Revision, s.Continued.Same(there, e)
}

// removeEntries removes those that the archive does not have.
func (s *restoring) removeEntries(ctx context.Context) error {
	for _, e := range s.left.entries {
		if err := s.Meta.Delete(ctx, e.Key, e.Revision); err != nil {
			return err
		}
	}
	clear(s.left.entries)
	return nil
}

// nothingElse wants no log to be there which the archive did not have.
func (s *restoring) nothingElse(ctx context.Context) error {
	engine, ok := s.Log.(eventlog.Archivable)
	if s.Continued == nil || !ok {
		return nil
	}
	logs, err := engine.Logs(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for id := range s.left.seen {
		known[id.Log] = true
	}
	for _, log := range logs {
		if !known[log.Name] {
			return fmt.Errorf("%w: it has a log %s", ErrOther, log.Name)
		}
		for number := range log.Shape.Partitions {
			id := eventlog.PartitionID{Log: log.Name, Number: number}
			if s.left.seen[id] {
				continue
			}
			p, err := s.Log.Partition(id)
			if err != nil {
				return err
			}
			b, err := patiently(ctx, func() (eventlog.Bounds, error) { return p.Bounds(ctx) })
			if err == nil && b.Next > 0 {
				err = fmt.Errorf("%w: there are events in partition %s", ErrOther, id)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// removedIsOther gives the error of a log that cannot be made again where it was removed.
func (s *restoring) removedIsOther(err error) error {
	if s.Continued != nil && errors.Is(err, eventlog.ErrRemoved) {
		return fmt.Errorf("%w, or was changed since: %w", ErrOther, err)
	}
	return err
}

// usedIsOther gives the error of a partition that cannot begin because it was used, though it has no events.
func (s *restoring) usedIsOther(err error) error {
	if s.Continued != nil && errors.Is(err, eventlog.ErrUsed) {
		return fmt.Errorf("%w: %w", ErrOther, err)
	}
	return err
}

// unreadableIsOther gives the error of a body at the target that cannot be read. To try again helps where servers
// do not answer; what is damaged stays so, and there would be no way out of it.
func unreadableIsOther(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || errors.Is(err, meta.ErrUnavailable) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w, or damaged: body %s: %w", ErrOther, name, err)
}

// putBody stores a body, or compares it with what is there.
func (s *restoring) putBody(ctx context.Context, name string, body io.Reader) error {
	if s.Continued == nil {
		return s.PutBody(name, body)
	}
	there, err := s.Continued.OpenBody(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s.PutBody(name, body)
	}
	if err != nil {
		return unreadableIsOther(ctx, name, err)
	}
	defer func() { _ = there.Close() }() // it was only read
	return sameBytes(ctx, name, there, body)
}

// sameBytes wants two bodies to be alike. A body that is of another length is another.
func sameBytes(ctx context.Context, name string, there, body io.Reader) error {
	is, wanted := make([]byte, 128<<10), make([]byte, 128<<10)
	for {
		n, err := io.ReadFull(body, wanted)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		m, failed := io.ReadFull(there, is)
		if failed != nil && !errors.Is(failed, io.EOF) && !errors.Is(failed, io.ErrUnexpectedEOF) {
			return unreadableIsOther(ctx, name, failed)
		}
		if !bytes.Equal(is[:m], wanted[:n]) {
			return fmt.Errorf("%w: body %s is another", ErrOther, name)
		}
		if err != nil { // the end of both
			return nil
		}
	}
}

// found are the events of a partition that an interrupted call has left, while they are compared.
type found struct {
	*Continued
	end    eventlog.Sequence // behind the last
	cursor eventlog.Cursor   // nil: it is still to be opened
	bufs   [2][]byte
}

// goOn looks where a partition ends, and tells whether it was begun.
func (i *importing) goOn(ctx context.Context, c *Continued) (begun bool, err error) {
	b, err := patiently(ctx, func() (eventlog.Bounds, error) { return i.log.Sealed(ctx) })
	switch {
	case err != nil:
		return false, err
	case b.Next == 0:
		return false, nil
	case b.First != i.First || b.Next < i.First || b.Next > i.Next: // also what the source has removed since: its entries know it no more
		return false, fmt.Errorf("%w: the partition has events %d to %d, and is to have %d to %d", ErrOther, b.First, b.Last(), i.First, i.Next-1)
	}
	i.found = found{Continued: c, end: b.Next}
	return true, nil
}

// compareRun wants a run that is there already to be the one that is restored.
func (i *importing) compareRun(ctx context.Context, run eventlog.Run) error {
	f := &i.found
	if run.First != i.at {
		return fmt.Errorf("%w: after %d comes %d: stop the yard that is copied", errChanged, i.at-1, run.First)
	}
	there, err := patiently(ctx, func() (eventlog.Run, error) { return f.next(ctx, i.log, run.First) })
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		return fmt.Errorf("%w, or damaged: %w", ErrOther, damage)
	}
	if err != nil {
		return err
	}
	f.bufs[0], f.bufs[1] = archive.AppendRun(f.bufs[0][:0], there), archive.AppendRun(f.bufs[1][:0], run)
	if !bytes.Equal(f.bufs[0], f.bufs[1]) {
		return fmt.Errorf("%w: event %d is another", ErrOther, run.First)
	}
	if f.Found != nil {
		f.Found(run.Len())
	}
	if i.sum != nil {
		i.sum.add(run)
	}
	i.at = run.Next()
	return nil
}

// next reads the run at a number.
func (f *found) next(ctx context.Context, p eventlog.Partition, at eventlog.Sequence) (run eventlog.Run, err error) {
	if f.cursor == nil {
		if f.cursor, err = p.Cursor(ctx, eventlog.At(at)); err != nil {
			return run, err
		}
	}
	if run, err = f.cursor.Next(ctx); err != nil {
		f.close()
	}
	return run, err
}

func (f *found) close() {
	if f.cursor != nil {
		_ = f.cursor.Close() // it was only read
		f.cursor = nil
	}
}
