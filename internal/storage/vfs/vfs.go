// Package vfs is the file-system seam: the few operations that durable storage needs,
// on the real disk (OS), in memory with power cuts (Mem), and with injected faults
// (Faulty). Names are slash-separated and relative to the file system's root.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// ErrLocked: another process holds the lock file.
var ErrLocked = errors.New("locked by another process")

// FS is a folder tree. All methods may be called by many goroutines at once. Errors are
// *fs.PathError or wrap fs.ErrNotExist and fs.ErrExist, and a full disk wraps syscall.ENOSPC.
type FS interface {
	// Create makes a new file for reading and writing; it fails with fs.ErrExist if
	// the name is taken. The name is durable only after SyncDir of its folder.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Rename moves a file or folder, replacing a file of the new name. Atomic; durable
	// after SyncDir of both folders.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty folder.
	Remove(name string) error
	// RemoveAll deletes a folder with all in it; no error if there is none.
	RemoveAll(name string) error
	// MkdirAll makes a folder and its parents, durably: it syncs each folder in which it made one.
	MkdirAll(name string) error
	// List gives a folder's entries, sorted by name.
	List(dir string) ([]Entry, error)
	// SyncDir makes creations, renames and removals in the folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock by way of a file, creating it. It fails with
	// ErrLocked at once when another holder exists. Close gives it back.
	Lock(name string) (io.Closer, error)
}

// Entry is one name in a folder.
type Entry struct {
	Name string
	Dir  bool
	// Other: neither a folder nor a file, but a symbolic link, a socket or the like. Storage makes
	// none of these.
	Other bool
	Bytes int64
}

// IsFile tells whether the name is that of a file.
func (e Entry) IsFile() bool { return !e.Dir && !e.Other }

// File is an open file. ReadAt and WriteAt may be called by many goroutines at once.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and length durable (fdatasync). After an error the
	// bytes not yet synced are in doubt for good: calling it again proves nothing.
	Sync() error
	Truncate(bytes int64) error
	Bytes() (int64, error)
}

// IsNotExist reports whether err says that the file is not there.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// IsNoSpace reports whether an error means that the disk is full, or the owner's share of it.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
