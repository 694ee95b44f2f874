package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Events and keys are nobody else's business on a shared machine.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// OS is the real disk below the folder root, which need not exist yet: MkdirAll(".")
// makes it. Links inside root are followed, so an operator may put a folder on
// another disk; names themselves cannot lead out of root.
func OS(root string) FS { return &osFS{root: root} }

type osFS struct {
	root string
	// making is held by MkdirAll, so that nobody finds a folder there whose name is
	// not durable yet.
	making sync.Mutex
}

func (d *osFS) Create(name string) (File, error) {
	return d.open("create", name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *osFS) Open(name string) (File, error) {
	return d.open("open", name, os.O_RDWR)
}

func (d *osFS) open(op, name string, flags int) (File, error) {
	path, err := d.path(op, name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osFS) Rename(oldName, newName string) error {
	from, err := d.pathBelow("rename", oldName)
	if err != nil {
		return err
	}
	to, err := d.pathBelow("rename", newName)
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d *osFS) Remove(name string) error {
	path, err := d.pathBelow("remove", name)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

func (d *osFS) RemoveAll(name string) error {
	path, err := d.pathBelow("removeall", name)
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (d *osFS) MkdirAll(name string) error {
	path, err := d.path("mkdir", name)
	if err != nil {
		return err
	}
	d.making.Lock()
	defer d.making.Unlock()
	return mkdirDurably(path)
}

// mkdirDurably makes the folder, its parents first, and syncs where it made one.
func mkdirDurably(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return pathError("mkdir", path, syscall.ENOTDIR)
	}
	if err == nil || !IsNotExist(err) {
		return err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return err
	}
	if err := mkdirDurably(parent); err != nil {
		return err
	}
	// Another process may have been faster. Its sync may be still to come, so ours
	// is done all the same.
	if err := os.Mkdir(path, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func (d *osFS) List(dir string) ([]Entry, error) {
	path, err := d.path("list", dir)
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		info, err := f.Info()
		if IsNotExist(err) {
			continue // removed while we were listing
		}
		if err != nil {
			return nil, err
		}
		entry := Entry{Name: f.Name(), Dir: f.IsDir()}
		if !entry.Dir {
			entry.Bytes = info.Size()
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func (d *osFS) SyncDir(dir string) error {
	path, err := d.path("syncdir", dir)
	if err != nil {
		return err
	}
	return syncDir(path)
}

// Lock holds the lock by the open file, so it ends with the process however that
// ends. The file stays behind: removing it would let two holders have one each.
func (d *osFS) Lock(name string) (io.Closer, error) {
	path, err := d.path("lock", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		if errors.Is(err, ErrLocked) {
			err = holder(f)
		}
		return nil, errors.Join(pathError("lock", path, err), f.Close())
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osLock{file: f}, nil
}

// path gives the operating system's path of a name that stays below root.
func (d *osFS) path(op, name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	return filepath.Join(d.root, local), nil
}

// pathBelow is path for what must not be done to root itself.
func (d *osFS) pathBelow(op, name string) (string, error) {
	if name == "." {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	return d.path(op, name)
}

// osLock is a held lock.
type osLock struct {
	once sync.Once
	file *os.File
	err  error
}

// Close gives the lock back. Safe twice.
func (l *osLock) Close() error {
	l.once.Do(func() {
		// The id is emptied first: once the lock is free it names nobody.
		l.err = errors.Join(l.file.Truncate(0), l.file.Close())
	})
	return l.err
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("write holder of lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write holder of lock: %w", err)
	}
	return nil
}

// holder names the process that holds the lock, if the file says so by now.
func holder(f *os.File) error {
	text := make([]byte, 32)
	n, err := f.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return ErrLocked
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return ErrLocked
	}
	return heldError{pid}
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Bytes() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
