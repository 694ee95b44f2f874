package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Compact writes the file anew without its free pages, which hold what entries were before. It
// fails with vfs.ErrLocked while a process has the store open. A power cut leaves the old file or
// the new one; what is left of an unfinished one goes at the next Open.
func Compact(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("compact meta store %s: %w", path, err)
		}
	}()
	from, err := openToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }() // again, where it was closed, does nothing
	if err := inspect(from); err != nil {                   // what bbolt reads by itself it trusts
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newSuffix+"*")
	if err != nil {
		return err
	}
	name := temp.Name()
	defer func() { _ = os.Remove(name) }()
	if err := temp.Close(); err != nil {
		return err
	}
	to, err := openBolt(name, bbolt.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(bbolt.Compact(to.DB, from.DB, 0), to.Sync(), to.Close(), from.Close()); err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
