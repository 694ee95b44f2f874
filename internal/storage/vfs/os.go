package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
// makes it. Root itself may be a symbolic link; below it none is followed: an operation on a
// name with one in its way fails. Two names of one file would be written by two owners.
//
// An operation on a name has up to three descriptors open for a moment. Eight run at once, so that
// many of them do not take the descriptors that others need.
func OS(root string) FS { return &osFS{root: root, turns: make(chan struct{}, 8)} }

type osFS struct {
	root  string
	turns chan struct{}
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
	var f *os.File
	err := d.named(op, name, func(local string) (err error) {
		f, err = d.openBelow(local, flags)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// openBelow opens a file or folder: in one step where the operating system can, since an os.Root
// opens each folder on the way. What that refuses, the os.Root judges.
func (d *osFS) openBelow(local string, flags int) (*os.File, error) {
	f, err := openBeneath(d.root, local, flags)
	if err == nil || IsNotExist(err) || errors.Is(err, fs.ErrExist) {
		return f, err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	way := local
	if flags&os.O_EXCL != 0 {
		way = filepath.Dir(local) // if the name is a link it is taken
	}
	if err := refuseLinks(root, way); err != nil {
		return nil, err
	}
	return root.OpenFile(local, flags, filePerm)
}

// refuseLinks fails where a name, or a folder on its way, is a link. One that is put there after it
// has looked does not lead out of the root.
func refuseLinks(root *os.Root, local string) error {
	for at, c := range local + string(filepath.Separator) {
		if c != filepath.Separator {
			continue
		}
		info, err := root.Lstat(local[:at])
		if IsNotExist(err) {
			return nil // nor is what would be in it
		}
		if err != nil {
			return err
		}
		if isLink(info) {
			return linkError{local[:at]}
		}
	}
	return nil
}

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }

// reach fails where a folder is a link or has one on its way. What else may be wrong with it, who
// works in it will find.
func (d *osFS) reach(local string) error {
	dir, err := d.openBelow(local, os.O_RDONLY)
	if err == nil {
		return dir.Close()
	}
	if _, ok := errors.AsType[linkError](err); ok {
		return err
	}
	return nil
}

func (d *osFS) Rename(oldName, newName string) error {
	to, err := localBelow("rename", newName)
	if err != nil {
		return err
	}
	return d.below("rename", oldName, func(root *os.Root, local string) error {
		if err := d.reach(filepath.Dir(to)); err != nil {
			return err
		}
		return root.Rename(local, to)
	})
}

func (d *osFS) Remove(name string) error {
	return d.below("remove", name, (*os.Root).Remove)
}

func (d *osFS) RemoveAll(name string) error {
	err := d.below("removeall", name, (*os.Root).RemoveAll)
	if IsNotExist(err) {
		return nil
	}
	return err
}

func (d *osFS) MkdirAll(name string) error {
	d.making.Lock()
	defer d.making.Unlock()
	if err := mkdirDurably(d.root); err != nil {
		return err
	}
	return d.within("mkdir", name, func(root *os.Root, local string) error {
		for at, c := range local + string(filepath.Separator) {
			if c != filepath.Separator {
				continue
			}
			if err := d.mkdirIn(root, local[:at]); err != nil {
				return err
			}
		}
		return nil
	})
}

// mkdirIn makes a folder whose parent is there, and syncs that.
func (d *osFS) mkdirIn(root *os.Root, local string) error {
	info, err := root.Lstat(local)
	switch {
	case err == nil && isLink(info):
		return linkError{local}
	case err == nil && !info.IsDir():
		return syscall.ENOTDIR
	case err == nil || !IsNotExist(err):
		return err
	}
	// Another process may have been faster. Its sync may be still to come, so ours
	// is done all the same.
	if err := root.Mkdir(local, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.syncBelow(filepath.Dir(local))
}

// mkdirDurably makes the root, its parents first, and syncs where it made one.
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
	if err := os.Mkdir(path, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) { // as in mkdirIn
		return err
	}
	return syncOpened(os.Open(parent))
}

func (d *osFS) List(dir string) (entries []Entry, err error) {
	err = d.named("list", dir, func(local string) error {
		f, err := d.openBelow(local, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		found, err := f.ReadDir(-1)
		if err != nil {
			return err
		}
		entries = make([]Entry, 0, len(found))
		for _, entry := range found {
			mode, bytes, err := statIn(f, entry)
			if IsNotExist(err) {
				continue // removed while we were listing
			}
			if err != nil {
				return err
			}
			if !mode.IsRegular() {
				bytes = 0
			}
			entries = append(entries, Entry{
				Name: entry.Name(), Dir: mode.IsDir(), Other: !mode.IsDir() && !mode.IsRegular(), Bytes: bytes,
			})
		}
		slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return entries, err
}

func (d *osFS) SyncDir(dir string) error {
	return d.named("syncdir", dir, d.syncBelow)
}

func (d *osFS) syncBelow(local string) error {
	return syncOpened(d.openBelow(local, os.O_RDONLY))
}

func syncOpened(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(syncNames(dir), dir.Close())
}

// Lock holds the lock by the open file, so it ends with the process however that
// ends. The file stays behind: removing it would let two holders have one each.
func (d *osFS) Lock(name string) (io.Closer, error) {
	var f *os.File
	err := d.within("lock", name, func(root *os.Root, local string) error {
		// What is not a file, such as a pipe, is not opened; a link is refused with what to do.
		if info, err := root.Lstat(local); err == nil && !isLink(info) && !info.Mode().IsRegular() {
			return errNotAFile
		}
		var err error
		f, err = d.openBelow(local, os.O_RDWR|os.O_CREATE)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		if errors.Is(err, ErrLocked) {
			err = holder(f)
		}
		return nil, errors.Join(pathError("lock", f.Name(), err), f.Close())
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &osLock{file: f}, nil
}

// within does something to a name that stays below root.
func (d *osFS) within(op, name string, do func(root *os.Root, local string) error) error {
	return d.named(op, name, func(local string) error {
		root, err := os.OpenRoot(d.root)
		if err != nil {
			return err
		}
		defer root.Close()
		return do(root, local)
	})
}

// named does something to a name when it is its turn. Its errors name the whole path.
func (d *osFS) named(op, name string, do func(local string) error) error {
	local, err := filepath.Localize(name)
	if err != nil {
		return pathError(op, name, fs.ErrInvalid)
	}
	d.turns <- struct{}{}
	defer func() { <-d.turns }()
	err = do(local)
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if err != nil {
		return pathError(op, filepath.Join(d.root, local), err)
	}
	return nil
}

// below is within for what is done to an entry of a folder, a link as well as any other, and must
// not be done to root itself.
func (d *osFS) below(op, name string, do func(root *os.Root, local string) error) error {
	if _, err := localBelow(op, name); err != nil {
		return err
	}
	return d.within(op, name, func(root *os.Root, local string) error {
		if err := d.reach(filepath.Dir(local)); err != nil {
			return err
		}
		return do(root, local)
	})
}

func localBelow(op, name string) (string, error) {
	local, err := filepath.Localize(name)
	if err != nil || name == "." {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	return local, nil
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
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	if err != nil && !IsNoSpace(err) { // nor is a full disk a reason not to start
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
