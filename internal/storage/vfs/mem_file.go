package vfs

import (
	"io"
	"io/fs"
	"syscall"
)

// memFile is an open file of a Mem. As with a real one, it outlives its name.
type memFile struct {
	mem    *Mem
	node   *node
	name   string // as it was opened, for errors
	closed bool   // guarded by mem.mu
}

func (m *Mem) handleLocked(n *node, name string) *memFile {
	n.handles++
	return &memFile{mem: m, node: n, name: name}
}

func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.readyLocked("read"); err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, f.errorf("read", fs.ErrInvalid)
	}
	n := f.node.content.readAt(p, offset)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, offset int64) (int, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if offset < 0 {
		return 0, f.errorf("write", fs.ErrInvalid)
	}
	if err := f.readyLocked("write"); err != nil {
		return 0, err
	}
	power := f.mem.stepLocked()
	if power != nil {
		p = p[:f.mem.rnd.IntN(len(p)+1)]
	}
	c, fits := &f.node.content, p // as much as there is room for
	if room := f.mem.roomLocked(); offset+int64(len(p))-c.length > room {
		fits = p[:max(0, c.length+room-offset)]
	}
	if len(fits) > 0 {
		f.mem.used += max(0, offset+int64(len(fits))-c.length)
		c.writeAt(fits, offset)
	}
	switch {
	case power != nil:
		return len(fits), f.errorf("write", power)
	case len(fits) < len(p):
		return len(fits), f.errorf("write", syscall.ENOSPC)
	}
	return len(fits), nil
}

func (f *memFile) Sync() error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.stepLocked("sync"); err != nil {
		return err
	}
	f.node.content.sync()
	return nil
}

// failSync is what a Sync does that reports an error: see sector.doubtful.
func (f *memFile) failSync() {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if f.readyLocked("sync") == nil {
		f.node.content.failSync()
	}
}

func (f *memFile) Truncate(bytes int64) error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.stepLocked("truncate"); err != nil {
		return err
	}
	if bytes < 0 {
		return f.errorf("truncate", fs.ErrInvalid)
	}
	grown := bytes - f.node.content.length
	if grown > f.mem.roomLocked() {
		return f.errorf("truncate", syscall.ENOSPC)
	}
	f.mem.used += grown
	f.node.content.truncate(bytes)
	return nil
}

func (f *memFile) Bytes() (int64, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.readyLocked("stat"); err != nil {
		return 0, err
	}
	return f.node.content.length, nil
}

func (f *memFile) Close() error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.readyLocked("close"); err != nil {
		return err
	}
	f.closed = true
	f.node.handles--
	f.mem.freeLocked(f.node)
	return nil
}

func (f *memFile) readyLocked(op string) error {
	if f.closed {
		return f.errorf(op, fs.ErrClosed)
	}
	if err := f.mem.readyLocked(); err != nil {
		return f.errorf(op, err)
	}
	return nil
}

func (f *memFile) stepLocked(op string) error {
	if err := f.readyLocked(op); err != nil {
		return err
	}
	if err := f.mem.stepLocked(); err != nil {
		return f.errorf(op, err)
	}
	return nil
}

func (f *memFile) errorf(op string, err error) error { return pathError(op, f.name, err) }
