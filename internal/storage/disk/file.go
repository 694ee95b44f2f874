package disk

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// errDropped: retention removed the segment; look again where to read.
var errDropped = errors.New("segment was removed")

// file is one segment of a partition. The fields of the active one are guarded by the partition's
// mu (see partition). All others are immutable once loaded. It is open while it is used, and for as
// long after as handles allows: handle.go.
type file struct {
	p    *partition
	dir  string // the partition's
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
	// allocated has been written to, if only with zeros; of the token's holder.
	allocated int64
	// sealed: the active segment ends with its trailer, which goes before the next write; of the
	// token's holder, changed under the partition's mu.
	sealed bool
	// written is the end of what was written, durable of what is known to be on disk. While written
	// is ahead the segment stays open, but in sync mode OS.
	written, durable atomic.Int64
	// doubtful is set when a sync of the segment failed.
	doubtful atomic.Bool
	// syncing is held by the one who syncs it.
	syncing sync.Mutex

	mu     sync.Mutex
	refs   int  // guarded by mu: readers of this segment
	pinned bool // guarded by mu: it is the active segment, which stays open without readers
	loaded bool // guarded by mu: head and tail are known

	// dropped: it has been removed. unwanted: and nobody reads it any more.
	dropped, unwanted atomic.Bool

	// opening is held by the one who opens or closes it.
	opening sync.Mutex
	handle  vfs.File      // of those who use it
	users   atomic.Int32  // see closed
	recent  atomic.Bool   // it was used since handles last looked
	element *list.Element // guarded by handles.mu
}

func (f *file) name() string { return path.Join(f.dir, fileName(f.base)) }

// acquire makes the segment ready for a reader, loading what it needs to know, and keeps it from
// being used again for something else. The reader calls release.
func (f *file) acquire() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped.Load() {
		return errDropped
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

// closeIfUnused closes the segment, unless somebody is in the middle of an operation.
func (f *file) closeIfUnused() {
	if f.refs == 0 && !f.pinned {
		f.unwanted.Store(f.dropped.Load())
		f.shut(idle)
	}
}

// load reads the header and the trailer or, where there is no trailer (the segment was
// left after a failure or a crash), all of it. The caller holds mu.
func (f *file) load() error {
	head, err := readHead(f, f.base, f.bytes)
	if errors.Is(err, segment.ErrHeader) {
		return f.corrupt(f.base, f.stop, err)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", f.name(), err)
	}
	trailer, err := segment.ReadTrailer(f, head.Salt, f.bytes)
	if err == nil && trailer.Next == int64(f.stop) {
		f.head, f.tail, f.loaded = head, trailer.Tail, true
		return nil
	}
	found, err := segment.Recover(f, head, f.bytes, int64(f.stop))
	if err != nil {
		return fmt.Errorf("recover %s: %w", f.name(), err)
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
	trailer, err := segment.ReadTrailer(f, f.head.Salt, bytes)
	if err != nil {
		return nil // an index only saves reading: without one the search begins at the front
	}
	return trailer.Index
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
	f.dropped.Store(true)
	f.pinned = false
	f.closeIfUnused()
	return f.refs == 0
}

func (f *file) corrupt(first, next eventlog.Sequence, reason error) error {
	return &eventlog.CorruptError{Where: f.name(), First: first, Next: next, Reason: reason.Error()}
}

// readHead reads a segment's header, or rebuilds it from the first batch if damaged.
func readHead(handle io.ReaderAt, base eventlog.Sequence, bytes int64) (segment.Head, error) {
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
