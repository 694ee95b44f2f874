package disk

import (
	"errors"
	"fmt"
	"path"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// redo does all entries of all journal files again, syncs the segments they concern, and
// removes the files. It runs before anything is opened, and has so many segments open at once.
func redo(fs vfs.FS, atOnce int) error {
	entries, err := fs.List(journalDir)
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		if isJournal(entry.Name) && entry.IsFile() {
			names = append(names, path.Join(journalDir, entry.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	r := redoing{fs: fs, atOnce: atOnce, files: map[string]vfs.File{}}
	defer r.close()
	for _, name := range names {
		if err := r.file(name); err != nil {
			return fmt.Errorf("do %s again: %w", name, err)
		}
	}
	if err := r.sync(); err != nil {
		return err
	}
	if r.unsure {
		return nil
	}
	for _, name := range names {
		if err := fs.Remove(name); err != nil {
			return err
		}
	}
	return fs.SyncDir(journalDir)
}

// redoing is one run of redo.
type redoing struct {
	fs     vfs.FS
	atOnce int
	// files are the segments in use by name; nil for one that is gone or lives another life.
	files map[string]vfs.File
	// unsure is set when a segment's header is damaged beyond repair.
	unsure bool
}

// file writes the bytes of all entries of a journal file where they belong.
func (r *redoing) file(name string) error {
	handle, err := r.fs.Open(name)
	if err != nil {
		return err
	}
	defer handle.Close()
	size, err := handle.Bytes()
	if err != nil {
		return err
	}
	return readEntries(handle, size, func(e entry) error {
		segment, err := r.segment(e)
		if err != nil || segment == nil {
			return err
		}
		_, err = segment.WriteAt(e.bytes, e.offset)
		return err
	})
}

// sync makes what was written durable.
func (r *redoing) sync() error {
	for name, handle := range r.files {
		if handle == nil {
			continue
		}
		if err := handle.Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", name, err)
		}
	}
	return nil
}

func (r *redoing) close() {
	for _, handle := range r.files {
		if handle != nil {
			handle.Close()
		}
	}
	clear(r.files)
}

func (r *redoing) segment(e entry) (vfs.File, error) {
	name := path.Join(partitionDir(e.id), fileName(e.base))
	life := fmt.Sprintf("%s %x", name, e.salt)
	if handle, ok := r.files[life]; ok {
		return handle, nil
	}
	if len(r.files) >= r.atOnce {
		if err := r.sync(); err != nil {
			return nil, err
		}
		r.close()
	}
	handle, err := r.fs.Open(name)
	if vfs.IsNotExist(err) {
		r.files[life] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bytes, err := handle.Bytes()
	if err != nil {
		handle.Close()
		return nil, err
	}
	head, err := readHead(handle, e.base, bytes)
	unknown := errors.Is(err, segment.ErrHeader)
	if err != nil && !unknown {
		handle.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.unsure = r.unsure || unknown // which life it is cannot be said: the entries are kept
	if unknown || head.Salt != e.salt {
		handle.Close()
		handle = nil
	}
	r.files[life] = handle
	return handle, nil
}
