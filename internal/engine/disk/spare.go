package disk

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/eventyard/eventyard/internal/segment"
	"github.com/eventyard/eventyard/internal/vfs"
)

// maxSpares bounds how many removed segments are kept for use again.
const maxSpares = 8

// spares keeps segments that retention has removed: their blocks are allocated and
// written, so that syncs into them are cheap. What they hold is void by its salt.
type spares struct {
	e      *Engine
	mu     sync.Mutex
	names  []string // guarded by mu
	next   int      // guarded by mu
	listed bool     // guarded by mu
}

func newSpares(e *Engine) *spares { return &spares{e: e} }

// reuse turns a spare file into the segment f: new header first, name last, so that the
// name never stands for an earlier life. It reports whether it tried.
func (s *spares) reuse(f *file, head []byte) (bool, error) {
	name, ok := s.take()
	if !ok {
		return false, nil
	}
	handle, err := s.e.fs.Open(name)
	if err != nil {
		return false, nil // not to be had: make a new one
	}
	f.handle = handle
	if f.allocated, err = handle.Bytes(); err != nil {
		return true, err
	}
	if _, err := handle.WriteAt(head, 0); err != nil {
		return true, err
	}
	if err := handle.Sync(); err != nil {
		return true, err
	}
	f.durable = segment.HeaderBytes
	if err := s.e.fs.Rename(name, f.name); err != nil {
		return true, err
	}
	return true, s.e.fs.SyncDir(spareDir) // the caller syncs the other side
}

// keep takes a removed segment in, or reports that there is no room for it. It may be
// called again after an error.
func (s *spares) keep(name string) (bool, error) {
	if s.e.cfg.Sync != Always {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list()
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

func (s *spares) take() (string, bool) {
	if s.e.cfg.Sync != Always {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list()
	if len(s.names) == 0 {
		return "", false
	}
	name := s.names[len(s.names)-1]
	s.names = s.names[:len(s.names)-1]
	return name, true
}

// purge frees the room that spares take.
func (s *spares) purge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list()
	for _, name := range s.names {
		if err := s.e.fs.Remove(name); err != nil && !vfs.IsNotExist(err) {
			s.e.log.Warn("remove spare segment", "segment", name, "error", err)
		}
	}
	s.names = nil
}

// list finds, once, what an earlier process left. The caller holds mu.
func (s *spares) list() {
	if s.listed {
		return
	}
	s.listed = true
	entries, err := s.e.fs.List(spareDir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		var n int
		if _, err := fmt.Sscanf(entry.Name, "%06d"+suffix, &n); err != nil || entry.Dir {
			continue
		}
		s.next = max(s.next, n)
		s.names = append(s.names, path.Join(spareDir, entry.Name))
	}
}
