package disk

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// What file.users counts: nothing while the segment is closed, then one more than there are
// operations in flight.
const (
	closed = iota
	idle
)

// errDoubtful: an earlier sync of the segment failed.
var errDoubtful = errors.New("an earlier sync failed")

// use opens the segment unless it is open, and keeps it open until unuse: for one operation.
func (f *file) use() (vfs.File, error) {
	for {
		n := f.users.Load()
		if n == closed {
			if opened, err := f.open(); err != nil {
				return nil, err
			} else if opened {
				return f.handle, nil
			}
			continue
		}
		if f.users.CompareAndSwap(n, n+1) {
			if !f.recent.Load() {
				f.recent.Store(true)
			}
			return f.handle, nil
		}
	}
}

func (f *file) unuse() {
	if f.users.Add(-1) > idle {
		return
	}
	if f.unwanted.Load() {
		f.shut(idle)
	}
	f.p.e.handles.ended()
}

// do is one operation on the segment.
func (f *file) do(operation func(vfs.File) error) error {
	handle, err := f.use()
	if err != nil {
		return err
	}
	defer f.unuse()
	return operation(handle)
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(b []byte, offset int64) (n int, err error) {
	handle, err := f.use()
	if err != nil {
		return 0, err
	}
	defer f.unuse()
	return handle.ReadAt(b, offset)
}

// open opens the segment, in use by the caller, unless somebody else has done so. A removed one is
// not opened again: its name may be another's.
func (f *file) open() (bool, error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.users.Load() != closed {
		return false, nil
	}
	if f.dropped.Load() {
		return false, errDropped
	}
	e := f.p.e
	e.handles.take()
	handle, err := e.fs.Open(f.name())
	if f.dropped.Load() { // meanwhile
		if err == nil {
			handle.Close()
		}
		err = errDropped
	}
	if err != nil {
		e.handles.give(f)
		return false, fmt.Errorf("open segment: %w", err)
	}
	f.adopt(handle, idle+1)
	return true, nil
}

// adopt gives a segment that has a place its handle.
func (f *file) adopt(handle vfs.File, users int32) {
	f.handle = handle
	f.recent.Store(true)
	f.users.Store(users)
	f.p.e.handles.add(f)
}

// giveWay closes the segment for another; the caller is using it. What is not durable yet is synced
// first: once it is closed, nobody hears that it could not be written. If somebody else came
// meanwhile it stays open.
func (f *file) giveWay() {
	f.p.trySeal(f)
	if f.unsynced() {
		if err := f.sync(); err != nil {
			f.p.logger().Error("sync before closing: events since the last one may not survive power loss", "segment", f.name(), "error", err)
		}
	}
	if !f.shut(idle + 1) {
		f.p.e.handles.add(f)
		f.unuse()
	}
}

// shut closes the segment if the given number of users is right, and all in it that has to be
// durable is.
func (f *file) shut(users int32) bool {
	f.opening.Lock()
	defer f.opening.Unlock()
	if !f.users.CompareAndSwap(users, closed) {
		return false
	}
	if !f.dropped.Load() && f.unsynced() { // written meanwhile
		f.users.Store(users)
		return false
	}
	f.handle.Close()
	f.handle = nil
	f.p.e.handles.give(f)
	return true
}

// unsynced: a sync is still owed to what was written.
func (f *file) unsynced() bool {
	return f.p.e.cfg.Sync != OS && !f.doubtful.Load() && f.written.Load() > f.durable.Load()
}

// sync is the one way to sync a segment. After one has failed, what the page cache says of
// the segment proves nothing any more, and no later sync succeeds. They run one by one,
// because the operating system tells an error to one of them only.
func (f *file) sync() error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.doubtful.Load() {
		return errDoubtful
	}
	reached := f.written.Load()
	handle, err := f.use()
	if err != nil {
		return err
	}
	defer f.unuse()
	if err := f.p.e.timedSync(handle); err != nil {
		f.doubtful.Store(true)
		return err
	}
	f.durable.Store(max(f.durable.Load(), reached))
	return nil
}
