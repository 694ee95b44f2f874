//go:build unix

package storage

import "golang.org/x/sys/unix"

// Space is what this user may still write to the disk of a folder, and how large that disk is.
func Space(folder string) (free, total int64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, 0, err
	}
	return int64(disk.Bavail) * int64(disk.Bsize), int64(disk.Blocks) * int64(disk.Bsize), nil
}
