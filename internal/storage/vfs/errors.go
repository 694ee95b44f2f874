package vfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrPowerLost: the Mem, or the file's Mem, has lost its power. Nothing on it works
// any more; go on with what CutPower or CrashProcess returned.
var ErrPowerLost = errors.New("power lost")

// errNotAFile: a link or a folder has a name that a file should have.
var errNotAFile = errors.New("it is not a file: move it away")

// linkError: a name below the root is a link.
type linkError struct{ local string }

func (e linkError) Error() string {
	return e.local + " is a link, and links in the folder are not followed: " +
		"move what it leads to in its place, or mount that there"
}

// heldError is ErrLocked with the holder's process id, so that an operator knows what to look for.
type heldError struct{ pid int }

func (e heldError) Error() string { return fmt.Sprintf("locked by process %d", e.pid) }

func (e heldError) Unwrap() error { return ErrLocked }

// pathError gives err the form that the os package gives its own.
func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}
