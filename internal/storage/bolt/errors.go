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

// isFull reports whether storage had no room. bbolt drops the cause's type where
// growing the file fails and keeps only its words.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		strings.Contains(err.Error(), syscall.ENOSPC.Error())
}

// numbered gives a full disk its number again where only its words were left.
func numbered(full error) error {
	if errors.Is(full, syscall.ENOSPC) || errors.Is(full, syscall.EDQUOT) {
		return full
	}
	return fmt.Errorf("%w: %w", syscall.ENOSPC, full)
}
