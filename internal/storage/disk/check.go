package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Progress is how far a check has come.
type Progress struct {
	Partition    string
	Bytes, Total int64
}

// Report is what a check found.
type Report struct {
	Partitions, Segments int
	Events, Bytes        int64
	// Problems are sentences for a person: where, what, and which events.
	Problems []string
	// Foreign are files that are not the engine's. They are left alone.
	Foreign []string
}

// Check reads every segment in the data folder and verifies every checksum and the
// numbering. It changes nothing, but does what a start does first: after an unclean end the
// journal is done again. It needs the folder for itself: vfs.ErrLocked. Bytes that an
// append cut short by power loss left at the end of a newest segment are no problem.
func Check(ctx context.Context, cfg Config, progress func(Progress)) (Report, error) {
	cfg = cfg.withDefaults()
	lock, err := cfg.FS.Lock(lockName)
	if err != nil {
		return Report{}, fmt.Errorf("check %s: %w", cfg.Dir, err)
	}
	defer lock.Close()
	if err := redo(cfg.FS, cfg.OpenSegments); err != nil && !vfs.IsNotExist(err) {
		return Report{}, fmt.Errorf("check %s: %w", cfg.Dir, err)
	}
	c := &check{fs: cfg.FS, progress: progress}
	if c.progress == nil {
		c.progress = func(Progress) {}
	}
	if err := c.find(); err != nil {
		return c.report, fmt.Errorf("check %s: %w", cfg.Dir, err)
	}
	for _, p := range c.partitions {
		c.report.Partitions++
		for _, f := range p.files {
			err := context.Cause(ctx)
			if err == nil {
				err = c.segment(f)
			}
			if err != nil {
				return c.report, fmt.Errorf("check %s: %w", p.dir, err)
			}
			c.report.Segments++
			c.report.Bytes += f.bytes
			c.progress(Progress{Partition: p.dir, Bytes: c.report.Bytes, Total: c.total})
		}
	}
	return c.report, nil
}

// check is one run of Check.
type check struct {
	fs         vfs.FS
	progress   func(Progress)
	partitions []checkedPartition
	total      int64
	report     Report
}

type checkedPartition struct {
	dir   string
	files []*file // oldest first
}

// find lists all that there is to read.
func (c *check) find() error {
	logs, err := c.folders(logDir)
	if err != nil {
		return err
	}
	for _, log := range logs {
		numbers, err := c.folders(log)
		if err != nil {
			return err
		}
		for _, dir := range numbers {
			if !isPartitionName(path.Base(dir)) {
				c.report.Foreign = append(c.report.Foreign, dir)
				continue
			}
			files, foreign, err := listSegments(c.fs, dir)
			if err != nil {
				return err
			}
			c.report.Foreign = append(c.report.Foreign, foreign...)
			for _, f := range files {
				c.total += f.bytes
			}
			c.partitions = append(c.partitions, checkedPartition{dir, files})
		}
	}
	return nil
}

// folders lists the folders in one; anything else in it is foreign.
func (c *check) folders(dir string) (dirs []string, err error) {
	entries, err := c.fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name)
		if entry.Dir {
			dirs = append(dirs, name)
		} else {
			c.report.Foreign = append(c.report.Foreign, name)
		}
	}
	return dirs, nil
}

// segment reads one file through. Its trailer, if it has one, has to agree.
func (c *check) segment(f *file) error {
	handle, err := c.fs.Open(f.name())
	if err != nil {
		return err
	}
	defer handle.Close()
	head, err := readHead(handle, f.base, f.bytes)
	if err != nil { // a newest segment that is empty has nothing to lose
		held, failed := holdsData(handle, f.bytes)
		if failed != nil {
			return failed
		}
		if held || f.stop >= 0 {
			c.problem("%s: %v: events from %d on cannot be read", f.name(), err, f.base)
		}
		return nil
	}
	found, err := segment.Recover(handle, head, f.bytes, int64(f.stop))
	if err != nil {
		return err
	}
	c.report.Events += found.Next - head.Base
	for _, hole := range found.Holes {
		c.report.Events -= hole.Next - hole.First
		c.problem("%s at offset %d: checksum does not match: events %d to %d cannot be read", f.name(), hole.From, hole.First, hole.Next-1)
	}
	// A segment ends neither before the next one begins, nor before its own trailer says.
	want := int64(f.stop)
	if trailer, err := segment.ReadTrailer(handle, head.Salt, f.bytes); err == nil && want < 0 {
		want = trailer.Next
	}
	if want >= 0 && found.Next < want {
		c.problem("%s at offset %d: checksum does not match: events %d to %d cannot be read", f.name(), found.Offset, found.Next, want-1)
	}
	return c.bodies(f, handle, head, found)
}

// bodies decodes every single event: a checksum only proves that the bytes are those written. What is
// in a form of its own, only who knows the form can look into.
func (c *check) bodies(f *file, handle vfs.File, head segment.Head, found segment.Found) error {
	scan := segment.NewScanner(handle, head.Salt, segment.HeaderBytes, found.Offset, nil)
	var events []eventlog.Event
	for {
		at := scan.Offset()
		batch, err := scan.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, segment.ErrInvalid):
			_, next, err := segment.Resync(handle, head.Salt, at+1, found.Offset)
			if err != nil {
				return nil // reported as the end of the segment
			}
			scan.MoveTo(next)
		case err != nil:
			return err
		case batch.Form != 0:
		default:
			if events, err = decodeEvents(events[:0], batch.Body, batch.Count); err != nil {
				c.problem("%s at offset %d: %v", f.name(), at, err)
			}
		}
	}
}

func (c *check) problem(format string, args ...any) {
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}
