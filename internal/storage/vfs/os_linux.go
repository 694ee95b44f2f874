package vfs

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// syncData is fdatasync: the bytes and the length, without the times that a full
// sync would write as well.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return pathError("sync", f.Name(), err)
	}
	var syncErr error
	// Control keeps the descriptor from being closed and used anew meanwhile.
	err = conn.Control(func(fd uintptr) {
		for {
			if syncErr = unix.Fdatasync(int(fd)); syncErr != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return pathError("sync", f.Name(), fs.ErrClosed) // the one thing Control fails for
	}
	if syncErr != nil {
		return pathError("sync", f.Name(), syncErr)
	}
	return nil
}

// openBeneath opens a name below root, where nothing is a link: unix.ELOOP if something is. Most often
// the way to root has none either, and one call does.
func openBeneath(root, local string, flags int) (*os.File, error) {
	name := filepath.Join(root, local)
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flags&os.O_CREATE != 0 {
		how.Mode = filePerm
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, name, &how)
	if err == unix.ELOOP {
		var at int
		if at, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, err
		}
		defer unix.Close(at)
		how.Resolve |= unix.RESOLVE_BENEATH
		fd, err = unix.Openat2(at, local, &how)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// statIn tells what an entry of an open folder is: of that folder, whatever has its name by now.
func statIn(dir *os.File, entry fs.DirEntry) (mode fs.FileMode, bytes int64, err error) {
	if entry.IsDir() {
		return fs.ModeDir, 0, nil
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), entry.Name(), &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, 0, err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0, stat.Size, nil
	case unix.S_IFDIR:
		return fs.ModeDir, 0, nil
	}
	return fs.ModeIrregular, 0, nil
}
