package disk

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// errDropped: retention removed the segment; look again where to read.
var errDropped = errors.New("segment was removed")

// file is one segment of a partition. The active one is open and its fields are guarded
// by the partition's mu (see partition). All others are immutable once loaded, and open
// only while somebody reads them.
type file struct {
	fs   vfs.FS
	name string // path in the file system
	base eventlog.Sequence
	// stop is the base of the following segment: what this one holds from there on is
	// void. Negative for the active one.
	stop eventlog.Sequence
	// bytes is the size on disk of a segment that is not active; written under the
	// partition's mu and this file's, read under either.
	bytes int64

	head segment.Head
	tail segment.Tail
	// index is nil for a sealed segment, which has it on disk; guarded by mu once the
	// segment is not active.
	index segment.Index
	// durable is known to be on disk; allocated has been written to, if only with zeros.
	durable, allocated int64
	// doubtful is set when a sync of the segment failed; guarded by the partition's mu.
	doubtful bool
	// syncing is held by the one who syncs it.
	syncing sync.Mutex

	mu      sync.Mutex
	handle  vfs.File // guarded by mu, but see pinned
	refs    int      // guarded by mu: readers of this segment
	pinned  bool     // guarded by mu: the active segment keeps its handle
	loaded  bool     // guarded by mu: head and tail are known
	dropped bool     // guarded by mu
}

// acquire opens the segment for a reader, loading what it needs to know. The reader calls release.
func (f *file) acquire() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped {
		return errDropped
	}
	if f.handle == nil {
		handle, err := f.fs.Open(f.name)
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		f.handle = handle
	}
	if !f.loaded {
		if err := f.load(); err != nil {
			f.closeIfUnused()
			return err
		}
	}
	f.refs++
	return nil
}

func (f *file) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refs--
	f.closeIfUnused()
}

func (f *file) closeIfUnused() {
	if f.refs == 0 && !f.pinned && f.handle != nil {
		f.handle.Close()
		f.handle = nil
	}
}

// load reads the header and the trailer or, where there is no trailer (the segment was
// left after a failure or a crash), all of it. The caller holds mu.
func (f *file) load() error {
	head, err := readHead(f.handle, f.base, f.bytes)
	if errors.Is(err, segment.ErrHeader) {
		return f.corrupt(f.base, f.stop, err)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", f.name, err)
	}
	tail, _, err := segment.ReadIndex(f.handle, head.Salt, f.bytes)
	if err == nil && tail.Next == int64(f.stop) {
		f.head, f.tail, f.loaded = head, tail, true
		return nil
	}
	found, err := segment.Recover(f.handle, head, f.bytes, int64(f.stop))
	if err != nil {
		return fmt.Errorf("recover %s: %w", f.name, err)
	}
	f.head, f.tail, f.index, f.loaded = head, found.Tail, found.Index, true
	return nil
}

// lookup gives the segment's index, from memory or from disk. The caller has acquired it.
func (f *file) lookup() segment.Index {
	f.mu.Lock()
	index, bytes := f.index, f.bytes
	f.mu.Unlock()
	if index != nil {
		return index
	}
	_, index, err := segment.ReadIndex(f.handle, f.head.Salt, bytes)
	if err != nil {
		return nil // an index only saves reading: without one the search begins at the front
	}
	return index
}

// unpin ends the segment's time as the active one.
func (f *file) unpin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pinned = false
	f.closeIfUnused()
}

// drop marks the segment as removed and reports whether nobody reads it.
func (f *file) drop() (unused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped, f.pinned = true, false
	f.closeIfUnused()
	return f.refs == 0
}

func (f *file) corrupt(first, next eventlog.Sequence, reason error) error {
	return &eventlog.CorruptError{Where: f.name, First: first, Next: next, Reason: reason.Error()}
}

// readHead reads a segment's header, or rebuilds it from the first batch if damaged.
func readHead(handle vfs.File, base eventlog.Sequence, bytes int64) (segment.Head, error) {
	var b [segment.HeaderBytes]byte
	n, err := handle.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return segment.Head{}, fmt.Errorf("read header: %w", err)
	}
	head, err := segment.ParseHead(b[:n])
	if err == nil && head.Base != int64(base) {
		err = fmt.Errorf("%w: it is of a segment that begins with %d", segment.ErrHeader, head.Base)
	}
	if err == nil {
		return head, nil
	}
	if head, ok := segment.SalvageHead(handle, int64(base), bytes); ok {
		return head, nil
	}
	return segment.Head{}, err
}
