package disk

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// maxSpares bounds how many removed segments are kept for use again.
const maxSpares = 8

// spares keeps segments that retention has removed: their blocks are allocated and
// written, so that syncs into them are cheap. What they hold is void by its salt. Those of
// an earlier process are not used: whether their old names are gone for good is not known.
//
// One file more is the reserve, large enough for a header. Where retention wants the only segment
// of a partition, another has to be begun before it goes, and on a full disk there is no room for
// it but this. The segment that then goes becomes the reserve: for that no room is needed.
type spares struct {
	e       *Engine
	mu      sync.Mutex
	names   []string // guarded by mu
	reserve string   // guarded by mu; empty while there is none
	// notBefore is when segments are kept again after the disk was full; guarded by mu.
	notBefore time.Time
}

// keepLater is for how long segments are not kept after the disk was full.
const keepLater = time.Minute

// reserveBytes is a block on most file systems, and more than a segment's header.
const reserveBytes = 4 << 10

// restock makes the reserve, unless there is one. Where it cannot be made, the next round of
// retention tries again.
func (s *spares) restock() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserve != "" {
		return nil
	}
	name := newSpareName()
	handle, err := s.e.fs.Create(name)
	if err == nil {
		_, err = handle.WriteAt(zeros[:reserveBytes], 0)
		err = errors.Join(err, handle.Sync(), s.e.fs.SyncDir(spareDir))
	}
	if err != nil {
		s.discard(name, handle)
		return fmt.Errorf("reserve room for retention on a full disk: %w", err)
	}
	s.reserve = name
	return handle.Close()
}

// build prepares the segment f aside: header written and synced, out of a spare file if
// there is one, or of the reserve if it must be. It gives the name to be renamed.
func (s *spares) build(f *file, must bool) (name string, handle vfs.File, err error) {
	name, handle, err = s.fill(f, s.open)
	if must && vfs.IsNoSpace(err) {
		s.discard(name, handle)
		s.purge()
		return s.fill(f, s.openReserve)
	}
	return name, handle, err
}

// fill writes the segment's beginning into the file that open gives, or a new one.
func (s *spares) fill(f *file, open func() (string, vfs.File)) (name string, handle vfs.File, err error) {
	name, handle = open()
	if handle == nil {
		name = newSpareName()
		if handle, err = s.e.fs.Create(name); err != nil {
			return name, nil, err
		}
	}
	if f.allocated, err = handle.Bytes(); err != nil {
		return name, handle, err
	}
	// The first batch of an earlier life must not stand behind the new header: if that
	// were damaged one day, it would be rebuilt from there.
	start := append(segment.AppendHead(nil, f.head), make([]byte, segment.BatchHeaderBytes)...)
	if _, err := handle.WriteAt(start, 0); err != nil {
		return name, handle, err
	}
	return name, handle, handle.Sync()
}

// open takes a spare file, if there is one that can be opened.
func (s *spares) open() (name string, handle vfs.File) {
	s.mu.Lock()
	if n := len(s.names); n > 0 {
		name, s.names = s.names[n-1], s.names[:n-1]
	}
	s.mu.Unlock()
	if name == "" {
		return "", nil
	}
	handle, err := s.e.fs.Open(name)
	if err != nil {
		return "", nil
	}
	return name, handle
}

// openReserve takes the reserve, if there is one.
func (s *spares) openReserve() (name string, handle vfs.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserve == "" {
		return "", nil
	}
	name, s.reserve = s.reserve, ""
	handle, err := s.e.fs.Open(name)
	if err != nil {
		return "", nil
	}
	return name, handle
}

// discard removes what build has left of a segment that was not to be.
func (s *spares) discard(name string, handle vfs.File) {
	if handle != nil {
		handle.Close()
	}
	if err := s.e.fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
		s.e.log.Warn("remove unfinished segment", "segment", name, "error", err)
	}
}

// keep takes a removed segment in, which nobody reads, or reports that it has no use for it. It may
// be called again after an error.
func (s *spares) keep(f *file, id eventlog.PartitionID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, size := spareName(id, f.base), s.e.cfg.SegmentBytes
	if s.reserve == "" {
		if err := s.takeLocked(f, name); err != nil {
			return false, err
		}
		s.reserve = name
		s.shrinkLocked()
		return true, nil
	}
	if s.e.cfg.Sync != Always || len(s.names) >= maxSpares || time.Now().Before(s.notBefore) || f.bytes < size/2 || f.bytes > 2*size {
		return false, nil
	}
	if err := s.takeLocked(f, name); err != nil {
		return false, err
	}
	s.names = append(s.names, name)
	return true, nil
}

// takeLocked gives a removed segment another name. Before it may be used again, or cut, its old
// name has to be gone for good: after power loss it would stand there with another content.
func (s *spares) takeLocked(f *file, name string) error {
	if err := s.e.fs.Rename(f.name(), name); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	return errors.Join(s.e.fs.SyncDir(f.dir), s.e.fs.SyncDir(spareDir))
}

// shrinkLocked frees what the reserve has beyond its size.
func (s *spares) shrinkLocked() {
	handle, err := s.e.fs.Open(s.reserve)
	if err == nil {
		err = errors.Join(handle.Truncate(reserveBytes), handle.Close())
	}
	if err != nil {
		s.e.log.Warn("shrink reserve", "file", s.reserve, "error", err)
	}
}

// purge frees the room that spares take, on a disk that is full.
func (s *spares) purge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if err := s.e.fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
			s.e.log.Warn("remove spare segment", "segment", name, "error", err)
		}
	}
	s.names, s.notBefore = nil, time.Now().Add(keepLater)
}
