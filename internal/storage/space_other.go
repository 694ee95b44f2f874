//go:build !unix

package storage

import "errors"

// FreeBytes is what this user may still write to the disk of a folder, where the system tells.
func FreeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }

// Space is not known here.
func Space(string) (free, total int64, err error) { return 0, 0, errors.ErrUnsupported }
