package disk

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// lookLocked finds out what the partition holds, at its first use. After a clean stop the newest
// segment's trailer tells, and nothing is changed; else it is read through. The others are known by
// their names until somebody reads them. Where there is none, none is made.
func (p *partition) lookLocked() error {
	if p.gone != nil || p.looked {
		return p.gone
	}
	if err := p.recover(); err != nil {
		for _, f := range p.files {
			f.drop()
		}
		p.files, p.active = nil, nil
		return fmt.Errorf("open %s: %w", p.id, classify(err))
	}
	if p.active != nil {
		p.visible = endOf(p.active.tail)
	}
	p.next, p.lastTime = p.visible.next, p.visible.lastTime
	p.looked = true
	p.noteLocked()
	return nil
}

// openLocked is lookLocked for a writer, for whom there has to be a segment.
func (p *partition) openLocked() error {
	if err := p.lookLocked(); err != nil || p.active != nil {
		return err
	}
	err := p.e.fs.MkdirAll(p.dir)
	if err == nil {
		err = p.begin(segment.Tail{})
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", p.id, classify(err))
	}
	p.visible = endOf(p.active.tail)
	return nil
}

// recover finds the segments, if there are any, and makes the newest one ready to be written.
func (s *segments) recover() error {
	files, foreign, err := listSegments(s.e.fs, s.dir)
	if vfs.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range foreign {
		reportForeign(s.logger(), name)
	}
	s.files = files
	if len(s.files) == 0 {
		return nil
	}
	for _, f := range s.files {
		f.p = s.p
	}
	last := s.files[len(s.files)-1]
	head, err := readHead(last, last.base, last.bytes)
	switch {
	case err == nil:
		return s.resume(last, head)
	case errors.Is(err, segment.ErrHeader):
		return s.replaceEmpty(last, err)
	default:
		return err
	}
}

// listSegments finds the segments in a folder, oldest first, and what else is there.
func listSegments(fs vfs.FS, dir string) (files []*file, foreign []string, err error) {
	entries, err := fs.List(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name)
		base, ok := parseName(entry.Name)
		if !ok || entry.Dir {
			foreign = append(foreign, name)
			continue
		}
		if entry.Other { // somebody may have moved the segment elsewhere: it must not look empty
			return nil, nil, fmt.Errorf("%s is a link or a device: put the file itself there", name)
		}
		if n := len(files); n > 0 {
			files[n-1].stop = base
		}
		files = append(files, &file{dir: dir, base: base, stop: -1, bytes: entry.Bytes})
	}
	return files, foreign, nil
}

// begin starts a segment behind the given end.
func (s *segments) begin(after segment.Tail) error {
	f, err := s.createFile(after, false)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	s.active = f
	return nil
}

// resume makes the newest segment the active one again. If its trailer says that all in it is durable
// it stays as it is. Else it is read through, and it is made sure that what was found stays, and that
// nothing else comes back.
func (s *segments) resume(f *file, head segment.Head) error {
	trailer, err := segment.ReadTrailer(f, head.Salt, f.bytes)
	if f.bytes == segment.HeaderBytes {
		trailer.Tail = head.Begin()
		trailer.Durable, err = true, nil
	}
	tail, index, durable := trailer.Tail, trailer.Index, trailer.Offset
	f.sealed = err == nil && trailer.Durable
	if !f.sealed {
		found, err := s.readThrough(f, head, trailer)
		if err != nil {
			return err
		}
		tail, index, durable = found.Tail, found.Index, found.Durable
	}
	f.head, f.tail, f.index = head, tail, index
	f.allocated, f.pinned, f.loaded = tail.Offset, true, true
	f.written.Store(tail.Offset)
	f.durable.Store(tail.Offset)
	s.active = f
	if f.sealed {
		f.allocated = f.bytes
		return nil
	}
	if err := f.do(func(handle vfs.File) error { return settle(handle, f.bytes, durable, f.tail.Offset) }); err != nil {
		return err
	}
	return s.e.fs.SyncDir(s.dir)
}

// readThrough finds what the newest segment holds. Its trailer is zero if it has none.
func (s *segments) readThrough(f *file, head segment.Head, trailer segment.Trailer) (found segment.Found, err error) {
	if trailer.Offset == 0 {
		found, err = segment.Recover(f, head, f.bytes, -1)
	} else {
		found, err = segment.RecoverSealed(f, head, trailer)
		found.Durable = found.Offset // a sync will do: had one failed, there were no trailer
	}
	if err != nil {
		return found, err
	}
	for _, hole := range found.Holes {
		s.e.metrics.corruptions.Inc()
		s.logger().Error("damaged bytes in a segment", "segment", f.name(), "from", hole.From, "to", hole.To,
			"firstLost", hole.First, "next", hole.Next)
	}
	if found.Next < trailer.Next {
		s.logger().Error("the newest events are gone: power was lost before they were on disk", "segment", f.name(),
			"firstLost", found.Next, "next", trailer.Next)
	}
	return found, nil
}

// settle makes what was found in a newest segment, up to an offset, all that there is, for good.
func settle(handle vfs.File, bytes, durable, end int64) error {
	// Whatever stands behind the end was never acknowledged. It must not be found again
	// later, behind new batches that happen to end where it begins.
	if bytes > end {
		if err := handle.Truncate(end); err != nil {
			return err
		}
	}
	// What was found may so far be known to the page cache only, if the process ended and
	// not the machine. It is about to be shown to readers, so it has to be durable: the
	// bytes and the file's name. A sync alone would not do: if an earlier one failed, the
	// page cache holds bytes that it takes for written and are not.
	if err := rewrite(handle, durable, end); err != nil {
		return err
	}
	return handle.Sync()
}

// rewrite writes a stretch of a file anew, as it is.
func rewrite(handle vfs.File, from, to int64) error {
	buf := make([]byte, min(to-from, 1<<20))
	for from < to {
		n := min(int64(len(buf)), to-from)
		if _, err := handle.ReadAt(buf[:n], from); err != nil {
			return err
		}
		if _, err := handle.WriteAt(buf[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// replaceEmpty puts a new segment in the place of a newest one without events whose header
// is damaged. If there is something in it all the same, it is left for a person to look at.
func (s *segments) replaceEmpty(f *file, reason error) error {
	if held, err := holdsData(f, f.bytes); err != nil || held {
		return errors.Join(f.corrupt(f.base, eventlog.NoSequence, reason), err)
	}
	f.drop()
	s.files = s.files[:len(s.files)-1]
	after := segment.Tail{Next: int64(f.base)}
	if n := len(s.files); n > 0 {
		before := s.files[n-1]
		if err := before.acquire(); err == nil {
			after.LastTime = before.tail.LastTime
			before.release()
		}
	}
	return s.begin(after)
}

// holdsData reports whether anything but zeros stands behind the header.
func holdsData(handle io.ReaderAt, bytes int64) (bool, error) {
	buf := make([]byte, 64<<10)
	for at := int64(segment.HeaderBytes); at < bytes; at += int64(len(buf)) {
		n, err := handle.ReadAt(buf[:min(int64(len(buf)), bytes-at)], at)
		for _, b := range buf[:n] {
			if b != 0 {
				return true, nil
			}
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
