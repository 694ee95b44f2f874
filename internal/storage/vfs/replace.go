package vfs

import "errors"

// UnfinishedSuffix ends the name of a file that is still being written.
const UnfinishedSuffix = ".new"

// ReplaceFile writes a file anew as a whole, for its owner only, and durably. A crash
// leaves the old one or the new one, and perhaps an unfinished one beside it, which the
// next call removes. No two calls for one name may run at once.
func ReplaceFile(dir FS, name, text string) error {
	unfinished := name + UnfinishedSuffix
	if err := dir.Remove(unfinished); err != nil && !IsNotExist(err) {
		return err
	}
	f, err := dir.Create(unfinished)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt([]byte(text), 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(unfinished, name)
	}
	if err != nil {
		_ = dir.Remove(unfinished)
		return err
	}
	return dir.SyncDir(".")
}
