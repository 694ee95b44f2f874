//go:build unix

package main

import "golang.org/x/sys/unix"

// canWrite tells whether this user may read, enter and change a folder.
func canWrite(dir string) error { return unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) }

// space gives what this user may still write, and the size of the disk.
func space(dir string) (free, total int64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, 0, err
	}
	block := int64(disk.Bsize)
	return int64(disk.Bavail) * block, int64(disk.Blocks) * block, nil
}
