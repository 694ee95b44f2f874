package vfs

import (
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Mem is a file system in memory whose power can be cut, for tests of what survives.
// It is meant to be as cruel as any real one:
//
//   - A file's bytes are durable after its Sync. Before, the system may have written
//     any of its 512-byte sectors back at any time: each is found as it is, as it was
//     at the last Sync (zeros, if it is behind the end of then), or as it was in
//     between, and one may be torn. The length is found new, old, or on the way.
//   - A name is durable after SyncDir of its folder, and a file's Sync does not help:
//     a new file may be gone, a removed one back, a renamed one at its old name. A
//     rename is atomic, and changes of the same name keep their order.
//   - After a failed Sync (see Faulty) the bytes it was for are in doubt until they are
//     written again.
//
// Nothing depends on time or on the order of a map, so the same operations and the
// same seeds give the same outcome.
type Mem struct {
	mu sync.Mutex
	// All below is guarded by mu.

	root  *node
	names names
	locks map[*node]bool

	capacity int64 // 0 = unlimited
	used     int64
	rnd      *rand.Rand
	ops      int
	budget   int // operations until the power goes, negative = never
	lost     bool
}

// NewMem makes an empty file system.
func NewMem() *Mem {
	return &Mem{
		root:   newDir(),
		names:  newNames(),
		locks:  make(map[*node]bool),
		rnd:    rand.New(rand.NewPCG(1, 2)),
		budget: -1,
	}
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.createLocked("create", name)
	if err != nil {
		return nil, err
	}
	return m.handleLocked(n, name), nil
}

func (m *Mem) createLocked(op, name string) (*node, error) {
	if err := m.stepLocked(); err != nil {
		return nil, pathError(op, name, err)
	}
	at, err := m.linkLocked(op, name)
	if err != nil {
		return nil, err
	}
	if at.dir.children[at.name] != nil {
		return nil, pathError(op, name, fs.ErrExist)
	}
	n := newFile()
	at.dir.children[at.name] = n
	m.names.add(&change{to: at, node: n})
	return n, nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.fileLocked("open", name)
	if err != nil {
		return nil, err
	}
	return m.handleLocked(n, name), nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.stepLocked(); err != nil {
		return pathError("rename", oldName, err)
	}
	from, err := m.linkLocked("rename", oldName)
	if err != nil {
		return err
	}
	to, err := m.linkLocked("rename", newName)
	if err != nil {
		return err
	}
	moved := from.dir.children[from.name]
	if moved == nil {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	replaced := to.dir.children[to.name]
	switch { // as the operating system refuses it
	case replaced != nil && replaced.isDir():
		return pathError("rename", newName, fs.ErrExist)
	case replaced != nil && moved.isDir():
		return pathError("rename", newName, syscall.ENOTDIR)
	case strings.HasPrefix(newName, oldName+"/"): // into itself
		return pathError("rename", newName, syscall.EINVAL)
	case from == to:
		return nil
	}
	delete(from.dir.children, from.name)
	to.dir.children[to.name] = moved
	m.names.add(&change{from: from, to: to, node: moved})
	m.unlinkLocked(replaced)
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.readyLocked(); err != nil {
		return pathError("remove", name, err)
	}
	at, err := m.linkLocked("remove", name)
	if err != nil {
		return err
	}
	return m.removeLocked(at, name)
}

func (m *Mem) removeLocked(at link, name string) error {
	if err := m.stepLocked(); err != nil {
		return pathError("remove", name, err)
	}
	n := at.dir.children[at.name]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(n.children) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(at.dir.children, at.name)
	m.names.add(&change{from: at, node: n})
	m.unlinkLocked(n)
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.readyLocked(); err != nil {
		return pathError("removeall", name, err)
	}
	at, err := m.linkLocked("removeall", name)
	if IsNotExist(err) || err == nil && at.dir.children[at.name] == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return m.removeAllLocked(at, name)
}

func (m *Mem) removeAllLocked(at link, name string) error {
	n := at.dir.children[at.name]
	for _, child := range slices.Sorted(maps.Keys(n.children)) {
		if err := m.removeAllLocked(link{n, child}, path.Join(name, child)); err != nil {
			return err
		}
	}
	return m.removeLocked(at, name)
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.readyLocked(); err != nil {
		return pathError("mkdir", name, err)
	}
	if !validName(name) {
		return pathError("mkdir", name, fs.ErrInvalid)
	}
	if name == "." {
		return nil
	}
	dir := m.root
	for _, part := range strings.Split(name, "/") {
		if dir.children[part] == nil {
			if err := m.stepLocked(); err != nil {
				return pathError("mkdir", name, err)
			}
			dir.children[part] = newDir()
			m.names.addDurable(&change{to: link{dir, part}, node: dir.children[part]})
		}
		dir = dir.children[part]
		if !dir.isDir() {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
	}
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.dirLocked("list", dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(n.children))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		entries = append(entries, Entry{Name: name, Dir: child.isDir(), Bytes: child.content.length})
	}
	return entries, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.stepLocked(); err != nil {
		return pathError("syncdir", dir, err)
	}
	n, err := m.dirLocked("syncdir", dir)
	if err != nil {
		return err
	}
	m.names.sync(n)
	return nil
}

// Lock implements FS. The lock is also given back when the power is cut.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.fileLocked("lock", name)
	if IsNotExist(err) {
		n, err = m.createLocked("lock", name)
	}
	if err != nil {
		return nil, err
	}
	if m.locks[n] {
		return nil, pathError("lock", name, ErrLocked)
	}
	m.locks[n] = true
	return &memLock{mem: m, node: n}, nil
}

// memLock is a held lock.
type memLock struct {
	once sync.Once
	mem  *Mem
	node *node
}

// Close gives the lock back. Safe twice.
func (l *memLock) Close() error {
	l.once.Do(func() {
		l.mem.mu.Lock()
		defer l.mem.mu.Unlock()
		delete(l.mem.locks, l.node)
	})
	return nil
}

// lookupLocked finds what a name leads to.
func (m *Mem) lookupLocked(op, name string) (*node, error) {
	if err := m.readyLocked(); err != nil {
		return nil, pathError(op, name, err)
	}
	if !validName(name) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	n := m.root
	if name == "." {
		return n, nil
	}
	for _, part := range strings.Split(name, "/") {
		if !n.isDir() {
			return nil, pathError(op, name, syscall.ENOTDIR)
		}
		if n = n.children[part]; n == nil {
			return nil, pathError(op, name, fs.ErrNotExist)
		}
	}
	return n, nil
}

func (m *Mem) dirLocked(op, name string) (*node, error) {
	n, err := m.lookupLocked(op, name)
	if err == nil && !n.isDir() {
		return nil, pathError(op, name, syscall.ENOTDIR)
	}
	return n, err
}

func (m *Mem) fileLocked(op, name string) (*node, error) {
	n, err := m.lookupLocked(op, name)
	if err == nil && n.isDir() {
		return nil, pathError(op, name, syscall.EISDIR)
	}
	return n, err
}

// linkLocked finds the folder of a name, which need not exist itself.
func (m *Mem) linkLocked(op, name string) (link, error) {
	if !validName(name) || name == "." {
		return link{}, pathError(op, name, fs.ErrInvalid)
	}
	dir, err := m.dirLocked(op, path.Dir(name))
	if err != nil {
		return link{}, err
	}
	return link{dir, path.Base(name)}, nil
}

// validName agrees with what OS accepts.
func validName(name string) bool {
	return fs.ValidPath(name) && !strings.Contains(name, "\x00")
}

func (m *Mem) unlinkLocked(n *node) {
	if n != nil {
		n.unlinked = true
		m.freeLocked(n)
	}
}

// freeLocked gives a file's room back once neither a name nor a handle leads to it.
func (m *Mem) freeLocked(n *node) {
	if n.unlinked && n.handles == 0 {
		m.used -= n.content.length
	}
}

// roomLocked is how much files may grow.
func (m *Mem) roomLocked() int64 {
	if m.capacity == 0 {
		return math.MaxInt64
	}
	return max(0, m.capacity-m.used)
}
