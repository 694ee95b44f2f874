package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// What the engine has in the data folder, beside the meta store.
const (
	lockName   = "LOCK"
	logDir     = "log"
	journalDir = "journal"
	spareDir   = "spare"
	trashDir   = "trash"
)

// Inspection says how to look into a data folder.
type Inspection struct {
	// DataDir is the folder; empty means eventyard-data.
	DataDir string
	// MaxLogBytes is how much of events is read through; zero means all there is. A
	// folder that holds more is not read, for it would take long.
	MaxLogBytes int64
	// Progress hears how far reading the events has come; nil means nobody.
	Progress func(done, total int64)
}

// Findings is what is in a data folder.
type Findings struct {
	// InUse: a yard runs on it. Nothing more was looked at.
	InUse bool
	// Meta is what is wrong with the meta store; nil if nothing is. It wraps
	// ErrMetaLost where the store is gone.
	Meta error
	// LogBytes is the size of all files with events.
	LogBytes int64
	// LogRead tells whether they were read through; the rest is known only then.
	LogRead              bool
	Partitions, Segments int
	Events               int64
	// Problems are sentences: where, what, and which events.
	Problems []string
	// Foreign are files that are not a yard's. They are left alone.
	Foreign []string
}

// Inspect verifies all that a data folder holds, changing nothing. The error is
// fs.ErrNotExist where there is no such folder, or nothing in it yet.
func Inspect(ctx context.Context, in Inspection) (Findings, error) {
	dir := Config{DataDir: in.DataDir}.withDefaults().DataDir
	var found Findings
	if err := found.lookAround(dir); err != nil {
		return found, fmt.Errorf("inspect %s: %w", dir, err)
	}
	inUse, err := isLocked(dir)
	if err != nil || inUse {
		return Findings{InUse: inUse}, err
	}
	for _, look := range []func() error{
		func() error { return found.checkMeta(dir) },
		func() error { return found.checkLog(ctx, dir, in) },
	} {
		err := look()
		if errors.Is(err, vfs.ErrLocked) {
			return Findings{InUse: true}, nil // a yard has started meanwhile
		}
		if err != nil {
			return found, fmt.Errorf("inspect %s: %w", dir, err)
		}
	}
	return found, nil
}

// lookAround finds what does not belong to a yard, and how large the rest is.
func (f *Findings) lookAround(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	ours := map[string]bool{
		lockName: true, metaName: true, logDir: true, journalDir: true, spareDir: true, trashDir: true,
		ConnectionStringFile: true, ConnectionStringFile + unfinishedSuffix: true, CertificateDir: true, blobDir: true,
		NodeFile: true, NodeFile + unfinishedSuffix: true,
	}
	known := false
	for _, entry := range entries {
		switch {
		case ours[entry.Name()]:
			known = true
		case entry.IsDir() && hasDeadLetters(filepath.Join(dir, entry.Name())):
		default:
			f.Foreign = append(f.Foreign, entry.Name())
		}
	}
	if !known {
		return fmt.Errorf("there is no yard's data in it: %w", fs.ErrNotExist)
	}
	f.LogBytes, err = folderBytes(filepath.Join(dir, logDir))
	return err
}

func folderBytes(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return total, nil // never used, or removed while we looked
	}
	return total, err
}

// Running tells whether a yard runs on a data folder; empty means eventyard-data.
func Running(dataDir string) (bool, error) {
	return isLocked(Config{DataDir: dataDir}.withDefaults().DataDir)
}

// isLocked asks for the lock without making one where there is none.
func isLocked(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, lockName)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := vfs.OS(dir).Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", dir, err)
	}
	return false, lock.Close()
}

func (f *Findings) checkMeta(dir string) error {
	err := bolt.Check(filepath.Join(dir, metaName))
	if errors.Is(err, vfs.ErrLocked) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		kept, lookErr := hasLogs(dir)
		if lookErr != nil {
			return lookErr
		}
		if !kept {
			return nil // nothing was ever described
		}
	}
	f.Meta = metaLost(dir, err)
	return nil
}

func (f *Findings) checkLog(ctx context.Context, dir string, in Inspection) error {
	if in.MaxLogBytes > 0 && f.LogBytes > in.MaxLogBytes {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, logDir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	report, err := disk.Check(ctx, disk.Config{Dir: dir}, func(p disk.Progress) {
		if in.Progress != nil {
			in.Progress(p.Bytes, p.Total)
		}
	})
	if err != nil {
		return err
	}
	f.LogRead = true
	f.Partitions, f.Segments, f.Events = report.Partitions, report.Segments, report.Events
	f.Problems = report.Problems
	f.Foreign = append(f.Foreign, report.Foreign...)
	return nil
}
