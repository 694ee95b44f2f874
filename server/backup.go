package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// backups is what takes them; nil where the storage cannot be copied while it is used.
func (y *yard) backups() func(context.Context, io.Writer) error {
	if _, ok := y.storage.Log.(eventlog.Archivable); !ok {
		return nil
	}
	return y.backup
}

// backup writes a backup of the yard while it serves, at this node and at others.
func (y *yard) backup(ctx context.Context, w io.Writer) error {
	began := time.Now()
	source, err := y.cfg.source(y.storage, y.blobs, y.broker.Namespace())
	if err != nil {
		return err
	}
	items, err := backup.Take(ctx, source, w)
	if err == nil {
		y.notes.Note(ctx, activity.Entry{Kind: activity.BackupTaken, Object: "backup", Count: len(items), Detail: "it took " + time.Since(began).Round(time.Millisecond).String()})
		y.cfg.Log.Info("a backup was taken", "parts", len(items), "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// source is all that is backed up. Where there is no folder, entries are kept in a file among those that
// are for a while, with secrets sealed; and the authority is one of the entries.
func (c Config) source(from *storage.Storage, blobs *blob.Service, namespace string) (backup.Source, error) {
	s := backup.Source{
		Head:    archive.Head{Program: "eventyard " + c.Version, Namespace: namespace, Engine: from.Engine, Replicas: from.Replicas, Taken: time.Now().UTC()},
		Entries: from.Entries, Log: from.Log, Bodies: blobs.Stored(),
		Spool: func() (io.ReadWriteCloser, error) { return newSpool(cmp.Or(from.Folder, os.TempDir())) },
	}
	if from.Folder == "" {
		return s, nil
	}
	var err error
	s.Files, err = c.backedUpFiles(from.Folder)
	s.ReadFile = func(name string) ([]byte, error) { return os.ReadFile(backedUpFile(from.Folder, name)) }
	return s, err
}

// backedUpFiles are the yard's id, by which it takes up at once what its functions had, and its
// certificates, with their keys sealed. Where one is not, no certificate is backed up: a backup has no
// secret that its holder could read.
func (c Config) backedUpFiles(folder string) ([]string, error) {
	names := []string{NodeFile}
	for _, file := range certs.OwnFiles() {
		name := path.Join(CertificateDir, file)
		content, err := os.ReadFile(backedUpFile(folder, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case certs.InClear(content):
			c.Log.Warn("certificates are left out of the backup: a private key is not sealed", "file", name)
			return names[:1], nil
		}
		names = append(names, name)
	}
	return names, nil
}

func backedUpFile(folder, name string) string { return filepath.Join(folder, filepath.FromSlash(name)) }

// newSpool makes a file in the data folder that goes when it is closed, or with the process. Where the
// system does not remove files that are open, it is removed when it is closed.
func newSpool(dir string) (io.ReadWriteCloser, error) {
	file, err := os.CreateTemp(dir, ".backup-*")
	if err != nil {
		return nil, err
	}
	if os.Remove(file.Name()) == nil {
		return file, nil
	}
	return &removedLater{file}, nil
}

type removedLater struct{ *os.File }

func (r *removedLater) Close() error { return errors.Join(r.File.Close(), os.Remove(r.Name())) }
