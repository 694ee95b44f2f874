//go:build linux || darwin || freebsd

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the file's lock or gives ErrLocked. The lock belongs to the open
// file, so a second open conflicts even inside one process.
func lockFile(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			if lockErr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB); lockErr != unix.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = lockErr
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// syncNames makes the names in an open folder durable.
func syncNames(dir *os.File) error { return dir.Sync() }

// FreeBytes tells how much can still be written to the disk that holds the folder.
func FreeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	for {
		err := unix.Statfs(dir, &stat)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, pathError("statfs", dir, err)
		}
		return int64(stat.Bavail) * int64(stat.Bsize), nil
	}
}
