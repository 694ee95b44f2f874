package vfs

import (
	"cmp"
	"errors"
	"io"
	"sync"
)

// OpKind tells the operations of a Faulty apart.
type OpKind int

// One kind for each method of FS and File.
const (
	OpCreate OpKind = iota
	OpOpen
	OpRename
	OpRemove
	OpRemoveAll
	OpMkdirAll
	OpList
	OpSyncDir
	OpLock
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpBytes
	OpClose
)

// String is the kind as errors name it.
func (k OpKind) String() string {
	return [...]string{
		"create", "open", "rename", "remove", "removeall", "mkdir", "list", "syncdir", "lock",
		"read", "write", "sync", "truncate", "stat", "close",
	}[k]
}

// Op is an operation about to be done.
type Op struct {
	Kind OpKind
	// Name is the file or folder; an open file's is the one it was opened by.
	Name string
	// To is the new name of an OpRename.
	To string
	// Offset and Bytes are the position and size of an OpRead or OpWrite; Bytes is also
	// the new length of an OpTruncate.
	Offset, Bytes int64
	// Data is what an OpWrite writes; not to be kept or changed.
	Data []byte
	// N numbers the operations of this kind, beginning with 1.
	N int
}

// Faulty is a file system that fails on purpose.
type Faulty struct {
	inner FS

	mu     sync.Mutex
	inject func(Op) error // guarded by mu
	counts map[OpKind]int // guarded by mu
}

// NewFaulty wraps a file system; until Inject it changes nothing.
func NewFaulty(inner FS) *Faulty {
	return &Faulty{inner: inner, counts: make(map[OpKind]int)}
}

// Inject has f called before each operation, in place of an f given earlier; nil ends
// it. An error of f's is returned, as an *fs.PathError, instead of doing the operation;
// only a Close is done all the same. f may block, which holds up that operation alone,
// and is called by many goroutines at once.
//
// A Sync that f fails on a Mem leaves the bytes not yet durable as the kernel does:
// taken for clean, so that no later Sync makes them durable either.
func (d *Faulty) Inject(f func(Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inject = f
}

// Count is how many operations of a kind have been begun.
func (d *Faulty) Count(kind OpKind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[kind]
}

// ShortWrite makes an OpWrite write its first n bytes and then fail with err. Given
// to any other kind it is err.
func ShortWrite(n int, err error) error { return &shortWrite{n, err} }

type shortWrite struct {
	n   int
	err error
}

func (s *shortWrite) Error() string { return s.err.Error() }

func (s *shortWrite) Unwrap() error { return s.err }

// Create implements FS.
func (d *Faulty) Create(name string) (File, error) {
	return d.wrap(Op{Kind: OpCreate, Name: name}, d.inner.Create)
}

// Open implements FS.
func (d *Faulty) Open(name string) (File, error) {
	return d.wrap(Op{Kind: OpOpen, Name: name}, d.inner.Open)
}

// Rename implements FS.
func (d *Faulty) Rename(oldName, newName string) error {
	return d.do(Op{Kind: OpRename, Name: oldName, To: newName}, func() error { return d.inner.Rename(oldName, newName) })
}

// Remove implements FS.
func (d *Faulty) Remove(name string) error {
	return d.do(Op{Kind: OpRemove, Name: name}, func() error { return d.inner.Remove(name) })
}

// RemoveAll implements FS.
func (d *Faulty) RemoveAll(name string) error {
	return d.do(Op{Kind: OpRemoveAll, Name: name}, func() error { return d.inner.RemoveAll(name) })
}

// MkdirAll implements FS.
func (d *Faulty) MkdirAll(name string) error {
	return d.do(Op{Kind: OpMkdirAll, Name: name}, func() error { return d.inner.MkdirAll(name) })
}

// List implements FS.
func (d *Faulty) List(dir string) (entries []Entry, err error) {
	err = d.do(Op{Kind: OpList, Name: dir}, func() error { entries, err = d.inner.List(dir); return err })
	return entries, err
}

// SyncDir implements FS.
func (d *Faulty) SyncDir(dir string) error {
	return d.do(Op{Kind: OpSyncDir, Name: dir}, func() error { return d.inner.SyncDir(dir) })
}

// Lock implements FS.
func (d *Faulty) Lock(name string) (lock io.Closer, err error) {
	err = d.do(Op{Kind: OpLock, Name: name}, func() error { lock, err = d.inner.Lock(name); return err })
	return lock, err
}

// do counts the operation, calls the injected function, outside the lock so that it may block, and
// does the operation unless that fails.
func (d *Faulty) do(op Op, operation func() error) error {
	d.mu.Lock()
	d.counts[op.Kind]++
	op.N = d.counts[op.Kind]
	inject := d.inject
	d.mu.Unlock()
	if inject != nil {
		if err := inject(op); err != nil {
			return pathError(op.Kind.String(), op.Name, err)
		}
	}
	return operation()
}

func (d *Faulty) wrap(op Op, open func(string) (File, error)) (f File, err error) {
	err = d.do(op, func() error { f, err = open(op.Name); return err })
	if err != nil {
		return nil, err
	}
	return &faultyFile{fs: d, inner: f, name: op.Name}, nil
}

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	fs    *Faulty
	inner File
	name  string
}

func (f *faultyFile) ReadAt(p []byte, offset int64) (n int, err error) {
	err = f.fs.do(Op{Kind: OpRead, Name: f.name, Offset: offset, Bytes: int64(len(p))}, func() error {
		n, err = f.inner.ReadAt(p, offset)
		return err
	})
	return n, err
}

func (f *faultyFile) WriteAt(p []byte, offset int64) (n int, err error) {
	err = f.fs.do(Op{Kind: OpWrite, Name: f.name, Offset: offset, Bytes: int64(len(p)), Data: p}, func() error {
		n, err = f.inner.WriteAt(p, offset)
		return err
	})
	if short, ok := errors.AsType[*shortWrite](err); ok {
		n, failed := f.inner.WriteAt(p[:min(short.n, len(p))], offset)
		return n, cmp.Or(failed, err)
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	done := false
	err := f.fs.do(Op{Kind: OpSync, Name: f.name}, func() error { done = true; return f.inner.Sync() })
	if mem, ok := f.inner.(*memFile); ok && !done {
		mem.failSync()
	}
	return err
}

func (f *faultyFile) Truncate(bytes int64) error {
	return f.fs.do(Op{Kind: OpTruncate, Name: f.name, Bytes: bytes}, func() error { return f.inner.Truncate(bytes) })
}

func (f *faultyFile) Bytes() (n int64, err error) {
	err = f.fs.do(Op{Kind: OpBytes, Name: f.name}, func() error { n, err = f.inner.Bytes(); return err })
	return n, err
}

func (f *faultyFile) Close() error {
	err := f.fs.do(Op{Kind: OpClose, Name: f.name}, func() error { return nil })
	return errors.Join(err, f.inner.Close())
}
