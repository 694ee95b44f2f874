package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// What storage has in a folder.
const (
	metaName   = "meta.db"
	lockName   = "LOCK"
	logDir     = "log"
	journalDir = "journal"
	spareDir   = "spare"
	trashDir   = "trash"
)

// storageNames are all that storage has in a folder.
func storageNames() []string {
	return []string{
		markName, markName + vfs.UnfinishedSuffix, SecretKeyFile, SecretKeyFile + vfs.UnfinishedSuffix,
		lockName, metaName, logDir, journalDir, spareDir, trashDir,
	}
}

// openDisk opens the engine first: its lock tells at once whether another yard has the folder. A
// folder that cannot be used is not touched.
func openDisk(ctx context.Context, folder string, cfg Config) (*Storage, error) {
	sync, err := disk.ParseSync(cfg.Sync)
	if err != nil {
		return nil, err
	}
	found, err := admit(folder, cfg.Own)
	if err != nil {
		return nil, err
	}
	if cfg.MustExist && found.kind == empty {
		return nil, fmt.Errorf("%w in %s", ErrNoYard, folder)
	}
	if err := vfs.OS(folder).MkdirAll("."); err != nil { // durably, for its owner only
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	engine, err := disk.Open(disk.Config{
		Dir: folder, Sync: sync, SyncInterval: cfg.SyncInterval, SegmentBytes: cfg.SegmentBytes,
		OpenSegments: cfg.OpenSegments, Log: cfg.Log, Metrics: cfg.Metrics,
		Claimed: func() error { return putMark(folder, cfg) },
		Renew:   func() error { return renewMark(folder, cfg) },
	})
	if err != nil {
		return nil, err
	}
	kept, err := hasLogs(folder)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	store, keys, closeMeta, err := openMeta(ctx, folder, cfg, kept)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	// The engine is closed before the store that its hubs are in.
	end := func() error { return errors.Join(engine.Close(), closeMeta()) }
	return &Storage{Log: engine, Meta: store, Keys: keys, Engine: "disk", Folder: folder, DiskFolder: folder, Local: true, close: end}, nil
}

// openMeta opens the store of definitions, in which secrets are sealed. What cannot be sealed for
// want of space is at a later start: that the yard starts is how space is made.
func openMeta(ctx context.Context, folder string, cfg Config, hasLogs bool) (meta.Store, *sealed.Keys, func() error, error) {
	store, err := bolt.Open(metaConfig(folder, cfg, hasLogs))
	if err != nil {
		return nil, nil, nil, metaLost(folder, err)
	}
	log := cmp.Or(cfg.Log, slog.Default())
	const later = "secrets in the meta store are sealed at a later start"
	keys, err := cfg.SecretKey.keys(ctx, folder, store)
	if errors.Is(err, syscall.ENOSPC) {
		log.Warn(later, "error", err)
		return store, nil, store.Close, nil
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close())
	}
	secured := sealed.New(store, keys)
	entries, due, err := secured.Reseal(ctx)
	if entries > 0 {
		log.Info("secrets were sealed with the newest secret key; older keys are needed only to restore backups from before", "entries", entries)
	}
	switch {
	case errors.Is(err, meta.ErrNoSpace):
		log.Warn(later, "error", err)
		return secured, keys, store.Close, nil
	case err != nil:
		return nil, nil, nil, errors.Join(err, store.Close())
	case !due:
		return secured, keys, store.Close, nil
	}
	// What they were before is still in free pages of the file.
	if err := store.Close(); err != nil {
		return nil, nil, nil, err
	}
	stale := bolt.Compact(filepath.Join(folder, metaName))
	if store, err = bolt.Open(metaConfig(folder, cfg, true)); err != nil {
		return nil, nil, nil, errors.Join(err, stale)
	}
	secured = sealed.New(store, keys)
	if stale == nil {
		stale = secured.Compacted(ctx)
	}
	if stale != nil {
		log.Warn("what secrets were before they were sealed is still in the meta store's file; the next start rewrites it", "error", stale)
	}
	return secured, keys, store.Close, nil
}

// metaConfig is of the store of definitions. It is durable in every sync mode: what a power cut may
// cost is a few events, never the hubs. Where there are logs there was a store, and making an empty
// one would hide them all.
func metaConfig(folder string, cfg Config, hasLogs bool) bolt.Config {
	return bolt.Config{Path: filepath.Join(folder, metaName), MustExist: hasLogs, Log: cfg.Log}
}

// metaLost tells the loss of the meta store from its other troubles.
func metaLost(folder string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s holds events of hubs that it described: %w", ErrMetaLost, filepath.Join(folder, logDir), err)
	}
	return err
}

// hasLogs tells whether the engine keeps anything for a hub. What cannot be a log, such as the
// lost+found of a disk, does not count.
func hasLogs(folder string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(folder, logDir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for logs: %w", err)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && e.Name() != lostFound
	}), nil
}

// InUse tells whether a yard has the storage open.
func InUse(url string) (bool, error) {
	folder, err := folderOf(url)
	if err != nil {
		return false, err
	}
	// No lock is made where there is none, and none of others is taken.
	if _, err := os.Stat(filepath.Join(folder, lockName)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if found, err := examine(folder, nil); err != nil || found.kind == foreign {
		return false, err
	}
	lock, err := vfs.OS(folder).Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", folder, err)
	}
	return false, lock.Close()
}
