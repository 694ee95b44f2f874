package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file, or a folder, of an archive.
type entry struct {
	name  string // with slashes
	mode  int64
	owner int    // id of user and group
	file  string // what it is made of; empty: of data
	data  []byte
}

func (e entry) isFolder() bool { return strings.HasSuffix(e.name, "/") }

func (e entry) open() (io.ReadCloser, int64, error) {
	if e.file == "" {
		return io.NopCloser(strings.NewReader(string(e.data))), int64(len(e.data)), nil
	}
	f, err := os.Open(e.file)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// archives writes one for each platform: the program, and what all have.
func (r *release) archives(context.Context) error {
	for _, p := range r.platforms {
		folder := r.name(p, "")
		entries, err := tree(r.staged(), folder)
		if err != nil {
			return err
		}
		program := r.program(p)
		entries = append(entries,
			entry{name: path.Join(folder, filepath.Base(program)), mode: 0o755, file: program},
			entry{name: path.Join(folder, licensesFile), mode: 0o644, file: r.licenses(p)})
		if p.os == "windows" {
			err = r.zip(folder+".zip", entries)
		} else {
			err = r.tarGzip(folder+".tar.gz", entries)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tree gives the files below a folder under another name.
func tree(folder, as string) (entries []entry, err error) {
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, file)
		entries = append(entries, entry{name: path.Join(as, filepath.ToSlash(rel)), mode: 0o644, file: file})
		return err
	})
	return entries, err
}

// tarGzip writes a .tar.gz to the release.
func (r *release) tarGzip(name string, entries []entry) error {
	return r.create(name, func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		return errors.Join(writeTar(packed, r.time, entries), packed.Close())
	})
}

// create writes a file of the release.
func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// writeTar writes entries by name, as of one time.
func writeTar(w io.Writer, at time.Time, entries []entry) error {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	t := tar.NewWriter(w)
	for _, e := range entries {
		if err := writeTarEntry(t, at, e); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeTarEntry(t *tar.Writer, at time.Time, e entry) error {
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: size, ModTime: at, Typeflag: tar.TypeReg}
	if e.isFolder() {
		header.Typeflag = tar.TypeDir
	}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(t, content)
	return err
}

// zip writes a .zip to the release.
func (r *release) zip(name string, entries []entry) error {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return r.create(name, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, e := range entries {
			if err := writeZipEntry(z, r.time, e); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func writeZipEntry(z *zip.Writer, at time.Time, e entry) error {
	content, _, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
	header.SetMode(fs.FileMode(e.mode))
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}
