package disk

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// A sync into blocks that were written before costs a third of one into a growing file
// (ARCHITECTURE.md has the figures). So small groups find zeros ahead of them, in steps
// that grow with the segment: a partition with little in it takes little room.
const (
	// blockBytes is what file systems give at once: the first step fills a block.
	blockBytes = 4 << 10
	// zeroAheadDouble is up to where each step doubles the segment; beyond, steps are a quarter of it.
	zeroAheadDouble = 256 << 10
	zeroAheadMax    = 4 << 20
	// largeWrite grows the file by itself: zeroing for it would double the bytes written.
	largeWrite = 64 << 10
)

var zeros [zeroAheadMax]byte

// segmentBytes is when the active segment counts as full: with a small retention by
// size, segments have to be smaller still, since only whole ones are removed.
func (s *segments) segmentBytes() int64 {
	size := s.e.cfg.SegmentBytes
	if keep := s.log.retention().Bytes; keep > 0 {
		size = min(size, max(keep/8, minSegmentBytes))
	}
	return size
}

// zeroAhead prepares room for the appends behind the one that was written up to the given
// offset. It is a matter of speed alone, so that its failure is nobody's.
func (s *segments) zeroAhead(end int64) {
	a := s.active
	if s.e.cfg.Sync != Always || end < a.allocated || end-a.tail.Offset >= largeWrite {
		return
	}
	size := min(preallocated(end), s.segmentBytes()) - end
	if size <= 0 {
		return
	}
	err := a.do(func(handle vfs.File) error {
		_, err := handle.WriteAt(zeros[:size], end)
		return err
	})
	if err == nil {
		a.allocated = end + size
	}
}

// preallocated is how far a segment is written with zeros whose batches end at the given offset.
func preallocated(end int64) int64 {
	ahead := min(max(end/4, min(end, zeroAheadDouble)), zeroAheadMax-blockBytes)
	return (end + ahead + blockBytes - 1) &^ (blockBytes - 1)
}

// roll makes a new segment the active one and seals the old. The caller holds the token.
// After a *refusal the old one can be written on; after any other error it must not be. If the old
// one is to go, it must succeed also where there is no room.
func (s *segments) roll(must bool) error {
	old := s.active
	if s.e.cfg.Sync == Interval { // or power loss could leave a hole before the new one
		if err := s.syncTo(old, old.tail.Offset); err != nil {
			return err
		}
	}
	next, err := s.createFile(old.tail, must)
	_, refused := errors.AsType[*refusal](err)
	s.mu.Lock()
	switch {
	case err == nil:
		s.retireActiveLocked(next)
	case !refused: // it is in doubt what is on disk
		s.fenceLocked(err)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// Without its index a segment is as good, only slower to open: a failure is logged and no more.
	if err := s.writeTrailer(old); err != nil {
		s.logger().Warn("segment left without its index", "segment", old.name(), "error", err)
	}
	old.unpin()
	return nil
}

func (s *segments) fenceLocked(err error) {
	if s.broken {
		return
	}
	s.broken = true
	s.e.metrics.fences.Inc()
	s.logger().Error("partition fenced: its newest segment is left, writing goes on in a new one",
		"error", err, "next", s.visible.next)
}

// retireActiveLocked puts a new segment in the active one's place.
func (s *segments) retireActiveLocked(next *file) {
	old := s.active
	old.stop = eventlog.Sequence(old.tail.Next)
	old.mu.Lock()
	old.bytes = max(old.allocated, old.tail.Offset)
	old.mu.Unlock()
	s.files = append(s.files, next)
	s.active = next
	s.visible = endOf(next.tail)
}

// putTrailer ends a segment with its index. It gives the size of the file.
func (f *file) putTrailer() (int64, error) {
	trailer := segment.AppendTrailer(nil, f.head.Salt, segment.Trailer{
		Tail: f.tail, Index: f.index, Durable: f.durable.Load() >= f.tail.Offset, Old: !f.p.e.renewal.done.Load(),
	})
	bytes := f.tail.Offset + int64(len(trailer))
	return bytes, f.do(func(handle vfs.File) error {
		if _, err := handle.WriteAt(trailer, f.tail.Offset); err != nil {
			return err
		}
		return handle.Truncate(bytes)
	})
}

// seal leaves the active segment so that whoever looks at the partition next, in this process or
// another, knows what it holds without reading it through, changing it or syncing it: all that is in
// it durable, but in sync mode OS, and then its trailer. That need not be durable: without, the segment
// is read. The caller holds the token.
func (s *segments) seal(f *file) error {
	if f.sealed {
		return nil
	}
	if f.unsynced() {
		if err := f.sync(); err != nil {
			return err
		}
	}
	if f.doubtful.Load() {
		return errDoubtful
	}
	bytes, err := int64(segment.HeaderBytes), error(nil)
	if f.tail.Offset > bytes {
		bytes, err = f.putTrailer()
	} else { // an empty one is known by its size
		err = f.do(func(handle vfs.File) error { return handle.Truncate(bytes) })
	}
	s.mu.Lock()
	f.sealed, f.allocated = true, bytes
	s.mu.Unlock()
	return err
}

// unseal takes the trailer off, for the next write. The caller holds the token.
func (s *segments) unseal(f *file) error {
	if err := f.do(func(handle vfs.File) error { return handle.Truncate(f.tail.Offset) }); err != nil {
		return err
	}
	s.mu.Lock()
	f.sealed, f.allocated = false, f.tail.Offset
	s.mu.Unlock()
	return nil
}

// writeTrailer ends a segment that is full with its index.
func (s *segments) writeTrailer(f *file) error {
	bytes, err := f.putTrailer()
	if err == nil && s.e.cfg.Sync != OS {
		err = f.sync()
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	f.mu.Lock()
	f.bytes, f.index = bytes, nil
	f.mu.Unlock()
	s.mu.Unlock()
	return nil
}

// createFile makes the segment that follows the given end, durable and open. It is built
// aside and gets its name last, in one step, over whatever has that name: whoever finds a
// segment on disk takes everything from its base on in the one before for void, so that the
// name may never stand for anything but a whole segment, and may never go away again. A
// failure before that is a *refusal: nothing has happened. If it must be, the reserve is used.
func (s *segments) createFile(after segment.Tail, must bool) (*file, error) {
	base := eventlog.Sequence(after.Next)
	f := &file{p: s.p, dir: s.dir, base: base, stop: -1}
	f.head = segment.Head{Salt: newSalt(), Base: after.Next, BaseTime: after.LastTime}
	f.tail = f.head.Begin()
	f.tail.Form, f.tail.FormKnown = after.Form, after.FormKnown
	f.written.Store(segment.HeaderBytes)
	f.durable.Store(segment.HeaderBytes)
	f.pinned, f.loaded = true, true
	s.e.handles.take()
	aside, handle, err := s.e.spares.build(f, must)
	if err == nil {
		err = s.e.fs.Rename(aside, f.name())
	}
	if err != nil {
		if vfs.IsNoSpace(err) {
			s.e.spares.purge()
		}
		s.e.spares.discard(aside, handle)
		s.e.handles.give(f)
		return nil, &refusal{fmt.Errorf("create %s: %w", f.name(), err)}
	}
	if err := errors.Join(s.e.fs.SyncDir(s.dir), s.e.fs.SyncDir(spareDir)); err != nil {
		handle.Close()
		s.e.handles.give(f)
		return nil, fmt.Errorf("create %s: %w", f.name(), err)
	}
	f.adopt(handle, idle)
	return f, nil
}

// mendLocked makes a broken partition writable: a new segment, whose base voids what the
// failed one may hold beyond what was acknowledged. The failed file is not touched, unless
// nothing in it was ever acknowledged: then its name is needed. What has gathered keeps its
// numbers, which follow what is visible.
func (p *partition) mendLocked() error {
	next, err := p.createFile(p.active.tail, false)
	if err != nil {
		return err
	}
	old := p.active
	p.retireActiveLocked(next)
	old.unpin()
	if old.base == next.base {
		old.drop()
		p.files = append(p.files[:len(p.files)-2], next)
	}
	p.broken = false
	p.logger().Info("partition mended", "next", p.next)
	return nil
}

// newSalt is random and not zero.
func newSalt() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:])
		if salt := binary.LittleEndian.Uint64(b[:]); salt != 0 {
			return salt
		}
	}
}
