package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// maxSpares bounds how many removed segments are kept for use again.
const maxSpares = 8

// spares keeps segments that retention has removed: their blocks are allocated and
// written, so that syncs into them are cheap. What they hold is void by its salt. Those of
// an earlier process are not used: whether their old names are gone for good is not known.
type spares struct {
	e     *Engine
	mu    sync.Mutex
	names []string // guarded by mu
	next  int      // guarded by mu
}

// build prepares the segment f aside: header written and synced, out of a spare file if
// there is one. It gives the name to be renamed.
func (s *spares) build(f *file) (name string, err error) {
	name, f.handle = s.open()
	if f.handle == nil {
		name = path.Join(spareDir, "new-"+rand.Text())
		if f.handle, err = s.e.fs.Create(name); err != nil {
			return name, err
		}
	}
	if f.allocated, err = f.handle.Bytes(); err != nil {
		return name, err
	}
	// The first batch of an earlier life must not stand behind the new header: if that
	// were damaged one day, it would be rebuilt from there.
	start := append(segment.AppendHead(nil, f.head), make([]byte, segment.BatchHeaderBytes)...)
	if _, err := f.handle.WriteAt(start, 0); err != nil {
		return name, err
	}
	if err := f.handle.Sync(); err != nil {
		return name, err
	}
	f.durable = segment.HeaderBytes
	return name, nil
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

// discard removes what build has left of a segment that was not to be.
func (s *spares) discard(name string, handle vfs.File) {
	if handle != nil {
		handle.Close()
	}
	if err := s.e.fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
		s.e.log.Warn("remove unfinished segment", "segment", name, "error", err)
	}
}

// keep takes a removed segment in, or reports that there is no room for it. It may be
// called again after an error.
func (s *spares) keep(name string) (bool, error) {
	if s.e.cfg.Sync != Always {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) >= maxSpares {
		return false, nil
	}
	spare := path.Join(spareDir, fmt.Sprintf("%06d%s", s.next+1, suffix))
	if err := s.e.fs.Rename(name, spare); err != nil && !vfs.IsNotExist(err) {
		return false, err
	}
	// Before it may be used again its old name has to be gone for good: after power loss
	// it would stand there with another segment's header.
	if err := errors.Join(s.e.fs.SyncDir(path.Dir(name)), s.e.fs.SyncDir(spareDir)); err != nil {
		return false, err
	}
	s.next++
	s.names = append(s.names, spare)
	return true, nil
}

// purge frees the room that spares take.
func (s *spares) purge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if err := s.e.fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
			s.e.log.Warn("remove spare segment", "segment", name, "error", err)
		}
	}
	s.names = nil
}
