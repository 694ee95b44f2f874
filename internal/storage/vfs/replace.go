package vfs

import "errors"

// UnfinishedSuffix ends the name of a file that ReplaceFile is still writing.
const UnfinishedSuffix = ".new"

// ReplaceFile writes a file anew as a whole, for its owner only, and durably. A crash leaves the
// old one or the new one, and perhaps an unfinished one beside it, which the next call removes. One
// that has the text already is left as it is: a full disk is no reason to fail. No two calls for
// one name may run at once.
func ReplaceFile(dir FS, name, text string) error {
	unfinished := name + UnfinishedSuffix
	if err := dir.Remove(unfinished); err != nil && !IsNotExist(err) {
		return err
	}
	if hasText(dir, name, text) {
		return dir.SyncDir(".")
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

func hasText(dir FS, name, text string) bool {
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	if size, err := f.Bytes(); err != nil || size != int64(len(text)) {
		return false
	}
	there := make([]byte, len(text))
	_, err = f.ReadAt(there, 0)
	return err == nil && string(there) == text
}
