package bolt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

var (
	// ErrCorrupt: the file, or one entry in it, is not what was written. The other
	// entries are not affected when it comes from reading one.
	ErrCorrupt = errors.New("meta store is damaged")
	// ErrFormat: the file is a sound bbolt file, but not one that this version keeps.
	ErrFormat = errors.New("not a meta store this version can use")

	// errNothingToCommit ends a transaction in which every change lost its comparison.
	errNothingToCommit = errors.New("nothing to commit")
)

// asFull gives the error of a full disk; nil for any other. bbolt drops the cause's type where
// growing the file fails and keeps only its words: it gets its number again.
func asFull(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return err
	case strings.Contains(err.Error(), syscall.ENOSPC.Error()):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return nil
}
