package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// backups is what takes them; nil where the storage cannot be copied while it is used, or is no folder:
// others may change what they share with us meanwhile, and nothing would hold it.
func (y *yard) backups() func(context.Context, io.Writer) error {
	if _, ok := y.storage.Log.(eventlog.Archivable); !ok || y.storage.Folder == "" {
		return nil
	}
	return y.backup
}

// backup writes a backup of the yard while it serves.
func (y *yard) backup(ctx context.Context, w io.Writer) error {
	began := time.Now()
	files, err := y.backedUpFiles()
	if err != nil {
		return err
	}
	items, err := backup.Take(ctx, backup.Source{
		Head: archive.Head{
			Program: "eventyard " + y.cfg.Version, Namespace: y.broker.Namespace(), Engine: y.storage.Engine, Taken: began.UTC(),
		},
		Entries: y.storage.Entries,
		Spool:   func() (io.ReadWriteCloser, error) { return newSpool(y.storage.Folder) },
		Log:     y.storage.Log, Bodies: y.blobs.Stored(),
		Files: files, ReadFile: func(name string) ([]byte, error) { return os.ReadFile(y.backedUpFile(name)) },
	}, w)
	if err == nil {
		y.cfg.Log.Info("a backup was taken", "parts", len(items), "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// backedUpFiles are the yard's id, by which it takes up at once what its functions had, and its
// certificates, with their keys sealed. Where one is not, no certificate is backed up: a backup has no
// secret that its holder could read.
func (y *yard) backedUpFiles() ([]string, error) {
	names := []string{NodeFile}
	for _, file := range certs.OwnFiles() {
		name := path.Join(CertificateDir, file)
		content, err := os.ReadFile(y.backedUpFile(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case certs.InClear(content):
			y.cfg.Log.Warn("certificates are left out of the backup: a private key is not sealed", "file", name)
			return names[:1], nil
		}
		names = append(names, name)
	}
	return names, nil
}

func (y *yard) backedUpFile(name string) string {
	return filepath.Join(y.storage.Folder, filepath.FromSlash(name))
}

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

// Restoration says what is restored, and where to.
type Restoration struct {
	// Backup is the folder of a backup, as eventyard backup writes it.
	Backup string
	// DataDir is the folder that a yard will be started on: it does not exist, or is empty, but for a
	// copy of the secret key of the yard that the backup is of, secret.key. Empty means eventyard-data.
	DataDir string
	// Secrets say where the secret key comes from, unless it is in the folder, as in Config.
	Secrets Secrets
	// Version is that of the program.
	Version string
	// Progress hears how far reading the backup has come; nil means nobody.
	Progress func(done, total int64)
}

// Restore makes a data folder from a backup. All of it is durable when it returns, and a yard opens it.
// After an error, or a crash, no yard does, and another call begins again. The error is, by errors.Is,
// ErrOccupied, ErrNoKey, ErrLocked, or one that says what is wrong with the backup or the disk.
func Restore(ctx context.Context, r Restoration) error {
	from, err := backup.Open(r.Backup)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	cfg := Config{DataDir: r.DataDir, Secrets: r.Secrets, Version: r.Version}.withDefaults()
	to, err := storage.Restore(ctx, storage.Disk(cfg.DataDir), cfg.storage(nil), storage.Restored{
		SecretKeys: from.Summary.SecretKeys, Revision: from.Summary.Revision,
	})
	if err != nil {
		return err
	}
	if err := restoreAll(ctx, from, cfg.DataDir, to, r.Progress); err != nil {
		return errors.Join(err, to.Close())
	}
	return to.Finish()
}

func restoreAll(ctx context.Context, from *backup.Folder, dataDir string, to *storage.Restoring, progress func(done, total int64)) error {
	bodies, err := blob.Restore(vfs.OS(filepath.Join(dataDir, blobDir)))
	if err != nil {
		return err
	}
	target := backup.Target{
		Meta: to.Meta, Check: to.Check, Log: to.Log,
		PutBody: func(name string, body io.Reader) error { return bodies.Put(ctx, name, body) },
		PutFile: func(name string, content io.Reader) error { return putFile(dataDir, name, content) },
	}
	if progress != nil {
		target.Progress = func(read int64) { progress(read, from.Summary.Bytes) }
	}
	return from.Restore(ctx, target)
}

// maxFileBytes is far more than they have.
const maxFileBytes = 1 << 20

// putFile writes one of the files that a yard backs up, and no other.
func putFile(dataDir, name string, content io.Reader) error {
	dir, file := path.Split(name)
	if name != NodeFile && (strings.TrimSuffix(dir, "/") != CertificateDir || !slices.Contains(certs.OwnFiles(), file)) {
		return fmt.Errorf("%q is not a file of a yard", name)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxFileBytes))
	if err != nil {
		return err
	}
	folder := vfs.OS(filepath.Join(dataDir, filepath.FromSlash(dir)))
	if err := folder.MkdirAll("."); err != nil {
		return err
	}
	return vfs.ReplaceFile(folder, file, string(text))
}
