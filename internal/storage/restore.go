package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

var (
	// ErrRestoring: a restore into the folder is under way, or was interrupted.
	ErrRestoring = errors.New("a restore is not finished")
	// ErrOccupied: the folder holds something, so that nothing is restored there.
	ErrOccupied = errors.New("the data folder is not empty")
	// ErrNoKey: a backup is sealed with a secret key that was not given.
	ErrNoKey = errors.New("the secret key of the backup is missing")
	// errNotSealed: there was no room to make a key.
	errNotSealed = errors.New("secrets are not sealed yet: make room on the disk, and start the yard again")
)

// restoringFormat is one that no program knows.
const restoringFormat = 1 << 30

// Entries visits all entries as of one moment, with secrets sealed; see meta.Snapshotter.
func (s *Storage) Entries(ctx context.Context, visit func(meta.Entry) error) error {
	secured, ok := s.Meta.(*sealed.Store)
	if !ok {
		return errNotSealed
	}
	return secured.Stored(ctx, visit)
}

// Restored says what is to be restored.
type Restored struct {
	// SecretKeys are the ids of the keys that entries are sealed with, as Entries gave them. The keys
	// themselves come from where Config says, or from a SecretKeyFile in the folder.
	SecretKeys []string
	// Revision is the highest of an entry. All revisions that are given from now on are above it, and
	// above those that the yard gave after the backup.
	Revision meta.Revision
}

// Restoring is storage that is being filled. Until Finish has returned nothing opens it.
type Restoring struct {
	Log eventlog.Engine
	// Meta takes values as they are stored, secrets sealed.
	Meta meta.Store

	folder string
	cfg    Config
	id     string
	keys   *sealed.Keys
	engine *disk.Engine
	store  *bolt.Store
}

// Restore makes storage at a URL to restore a backup to. The folder is empty but for a SecretKeyFile, or
// does not exist, or has what an interrupted restore has left, which is removed. It is marked before
// anything is written to it, so that no program opens it as a yard's. Errors: ErrOccupied, ErrNoKey,
// ErrLocked, or that of the disk; after the first two nothing was changed.
func Restore(ctx context.Context, url string, cfg Config, what Restored) (*Restoring, error) {
	folder, err := folderOf(url)
	if err != nil {
		return nil, err
	}
	if err := restorable(folder, cfg); err != nil {
		return nil, err
	}
	keys, err := cfg.SecretKey.thatOpen(ctx, folder, what.SecretKeys)
	if err != nil {
		return nil, err
	}
	if err := vfs.OS(folder).MkdirAll("."); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	r := &Restoring{folder: folder, cfg: cfg, id: rand.Text(), keys: keys}
	r.engine, err = disk.Open(disk.Config{
		Dir: folder, SegmentBytes: cfg.SegmentBytes, OpenSegments: cfg.OpenSegments, Log: cfg.Log, Claimed: r.claim,
	})
	if err != nil {
		return nil, err
	}
	if r.store, err = bolt.Open(metaConfig(folder, cfg, false)); err == nil {
		err = r.store.Raise(ctx, raised(what.Revision))
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.Log, r.Meta = r.engine, r.store
	return r, nil
}

// raised is where revisions begin after a restore: far above all that the yard may have given since the
// backup, and low enough for thousands of restores.
func raised(revision meta.Revision) meta.Revision { return (revision>>40 + 1) << 40 }

// thatOpen gives the keys, which have to be those with the ids; nil where none is needed.
func (k SecretKey) thatOpen(ctx context.Context, folder string, ids []string) (*sealed.Keys, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys, err := k.read(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it is sealed with key %s, and there is none: %w", ErrNoKey, strings.Join(ids, ", "), err)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !keys.Has(id) {
			return nil, fmt.Errorf("%w: it is sealed with key %s, and another one was given", ErrNoKey, id)
		}
	}
	return keys, nil
}

// restorable says by ErrOccupied why a folder cannot be restored to.
func restorable(folder string, cfg Config) error {
	found, err := examine(folder, cfg.Own)
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(found.names, func(name string) bool { return name == SecretKeyFile })
	switch {
	case found.kind == marked && found.mark.Restoring != "", len(names) == 0:
		return noLinks(folder, append(storageNames(), cfg.Own...))
	case found.kind == foreign:
		return fmt.Errorf("%w: %s holds %s", ErrOccupied, folder, someOf(names))
	}
	return fmt.Errorf("%w: %s holds the data of a yard", ErrOccupied, folder)
}

// claim marks the folder, and removes what an interrupted restore has left. The folder is locked.
func (r *Restoring) claim() error {
	if err := restorable(r.folder, r.cfg); err != nil { // again: another process may have been here before the lock
		return err
	}
	if err := r.cfg.put(r.folder, mark{Format: restoringFormat, Program: r.cfg.Program, Restoring: r.id}); err != nil {
		return err
	}
	left, err := os.ReadDir(r.folder)
	if err != nil {
		return err
	}
	folder := vfs.OS(r.folder)
	for _, entry := range left {
		name := entry.Name()
		ours := slices.Contains(storageNames(), name) || slices.Contains(r.cfg.Own, name) || bolt.IsUnfinished(name, metaName)
		if !ours || slices.Contains([]string{markName, lockName, SecretKeyFile}, name) {
			continue
		}
		if err := folder.RemoveAll(name); err != nil {
			return fmt.Errorf("remove what an interrupted restore has left: %w", err)
		}
	}
	return folder.SyncDir(".")
}

// Check says why an entry cannot be used: its secret was changed since it was sealed.
func (r *Restoring) Check(e meta.Entry) error {
	if r.keys == nil {
		return nil
	}
	_, _, err := r.keys.Open(e.Key, e.Value)
	return err
}

// Finish makes it the data of a yard, once all of it is durable. Nothing else uses it by then. After an
// error it is not.
func (r *Restoring) Finish() error {
	if err := r.Close(); err != nil {
		return err
	}
	lock, err := vfs.OS(r.folder).Lock(lockName)
	if err != nil {
		return fmt.Errorf("lock %s: %w", r.folder, err)
	}
	defer func() { _ = lock.Close() }()
	m, err := readMark(filepath.Join(r.folder, markName))
	if err != nil {
		return err
	}
	if m.Restoring != r.id {
		return fmt.Errorf("%w: another one has begun in %s", ErrRestoring, r.folder)
	}
	return writeMark(r.folder, r.cfg)
}

// Close frees the folder, which stays marked as unfinished unless Finish was called. Safe twice.
func (r *Restoring) Close() error {
	err := r.engine.Close()
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}
