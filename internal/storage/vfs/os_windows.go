package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is what lockFile locks: far behind the holder's process id, since
// Windows keeps others from reading what is locked.
const lockedByte = 1 << 30

// lockFile takes the file's lock or gives ErrLocked.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: lockedByte}
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// syncNames has nothing to do: NTFS journals names by itself, and Windows offers no sync of a folder.
func syncNames(*os.File) error { return nil }

// FreeBytes tells how much can still be written to the disk that holds the folder.
func FreeBytes(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, pathError("statfs", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, pathError("statfs", dir, err)
	}
	return int64(free), nil
}
