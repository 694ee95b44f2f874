package vfs

import (
	"io/fs"
	"os"

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
