package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// unfinishedSuffix ends the name of a file that is still being written.
const unfinishedSuffix = ".new"

// files are bodies in a folder that one process has to itself, a file each.
type files struct{ fs vfs.FS }

var _ Bodies = files{}

func openFiles(fs vfs.FS) (files, error) {
	if err := fs.MkdirAll("."); err != nil {
		return files{}, fmt.Errorf("make the folder of bodies: %w", err)
	}
	return files{fs}, nil
}

// Put makes a durable file, or none.
func (f files) Put(_ context.Context, name string, body io.Reader) (int64, error) {
	bytes, err := f.put(name, body)
	if vfs.IsNoSpace(err) {
		err = fmt.Errorf("%w: %w", meta.ErrNoSpace, err)
	}
	return bytes, err
}

func (f files) put(name string, body io.Reader) (int64, error) {
	unfinished := name + unfinishedSuffix
	bytes, err := f.fill(unfinished, body)
	if err == nil {
		err = f.fs.Rename(unfinished, name)
	}
	if err != nil {
		_ = f.fs.Remove(unfinished)
		return 0, err
	}
	if err := f.fs.SyncDir("."); err != nil {
		_ = f.fs.Remove(name)
		return 0, err
	}
	return bytes, nil
}

func (f files) fill(name string, body io.Reader) (bytes int64, err error) {
	file, err := f.fs.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	bytes, err = io.CopyBuffer(plainWriter{io.NewOffsetWriter(file, 0)}, body, make([]byte, copyBytes))
	if err != nil {
		return 0, err
	}
	return bytes, file.Sync()
}

// plainWriter hides all but Write, so that a copy is done in pieces of our size.
type plainWriter struct{ io.Writer }

// Open opens the file.
func (f files) Open(_ context.Context, name string, offset, bytes int64) (io.ReadCloser, int64, error) {
	file, err := f.fs.Open(name)
	if err != nil {
		return nil, 0, err
	}
	stored, err := file.Bytes()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return sectionReader{io.NewSectionReader(file, offset, bytes), file}, stored, nil
}

// sectionReader is a part of a file that is closed after it.
type sectionReader struct {
	io.Reader
	io.Closer
}

// Remove deletes the file, finished or not.
func (f files) Remove(_ context.Context, name string) error {
	var errs []error
	for _, file := range []string{name, name + unfinishedSuffix} {
		if err := f.fs.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// List gives the files that are ours, finished or not.
func (f files) List(context.Context) ([]string, error) {
	entries, err := f.fs.List(".")
	if err != nil {
		return nil, err
	}
	var names []string
	seen := make(map[string]bool)
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name, unfinishedSuffix)
		if e.IsFile() && isBody(name) && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
