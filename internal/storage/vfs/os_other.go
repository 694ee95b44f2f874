//go:build !linux

package vfs

import "os"

// syncData is the strongest sync that the os package knows here.
func syncData(f *os.File) error { return f.Sync() }
