//go:build !linux

package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// syncData is the strongest sync that the os package knows here.
func syncData(f *os.File) error { return f.Sync() }

// openBeneath has no counterpart here.
func openBeneath(root, local string, flags int) (*os.File, error) {
	return nil, errors.ErrUnsupported
}

// statIn tells what an entry of an open folder is.
func statIn(dir *os.File, entry fs.DirEntry) (mode fs.FileMode, bytes int64, err error) {
	info, err := entry.Info()
	if err != nil {
		return 0, 0, err
	}
	return info.Mode(), info.Size(), nil
}
