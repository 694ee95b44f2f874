package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Inspection says how to look into storage.
type Inspection struct {
	// Peer is whose folder is looked at, where the URL is a peer's.
	Peer *Peer
	// Own are the names of what a yard has beside its storage. Known tells what else belongs there,
	// though it proves no yard; nil means nothing.
	Own   []string
	Known func(path string, entry fs.DirEntry) bool
	// SecretKey is where the secret key comes from.
	SecretKey SecretKey
	// MaxLogBytes is how much of events is read through; zero means all there is. Storage that
	// holds more is not read, for it would take long.
	MaxLogBytes int64
	// Progress hears how far reading the events has come; nil means nobody.
	Progress func(done, total int64)
}

// Findings is what is in storage.
type Findings struct {
	// InUse: a yard has it open. Nothing more was looked at.
	InUse bool
	// Meta is what is wrong with the meta store; nil if nothing is. It wraps ErrMetaLost where the
	// store is gone.
	Meta error
	// Key is why the secret key does not open what is sealed in a meta store that is sound; nil: it does,
	// or nothing is sealed.
	Key error
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
	// Servers are the names of those that were asked, where storage is on servers; then only Problems
	// and Warnings are known besides. Both are about how the servers are set.
	Servers, Warnings []string
}

// Inspect verifies all that storage holds, changing nothing. The error is fs.ErrNotExist where
// there is none, or nothing in it yet; ErrForeign or ErrNewerData where Open would give that. Of
// storage on servers it verifies how the servers are set, and of a peer whether it could start and which
// others answer: InUse then says only whether it runs.
func Inspect(ctx context.Context, url string, in Inspection) (Findings, error) {
	if connect.IsURL(url) {
		return inspectNATS(ctx, url)
	}
	if folder, is := strings.CutPrefix(url, peerScheme); is && in.Peer != nil {
		return inspectPeer(ctx, folder, *in.Peer, in.Own)
	}
	folder, err := folderOf(url)
	if err != nil {
		return Findings{}, err
	}
	var found Findings
	if err := found.lookAround(folder, in); err != nil {
		return found, fmt.Errorf("inspect %s: %w", folder, err)
	}
	inUse, err := InUse(url)
	if err != nil || inUse {
		return Findings{InUse: inUse}, err
	}
	err = found.checkMeta(folder)
	if err == nil {
		err = found.checkKey(ctx, folder, in.SecretKey)
	}
	if err == nil {
		err = found.checkLog(ctx, folder, in)
	}
	if errors.Is(err, vfs.ErrLocked) {
		return Findings{InUse: true}, nil // a yard has started meanwhile
	}
	if err != nil {
		return found, fmt.Errorf("inspect %s: %w", folder, err)
	}
	return found, nil
}

// lookAround finds what does not belong to a yard, and how large the rest is.
func (f *Findings) lookAround(folder string, in Inspection) error {
	found, err := admit(folder, in.Own)
	if err != nil {
		return err
	}
	if found.kind == empty {
		return fmt.Errorf("there is no yard's data in it: %w", fs.ErrNotExist)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	own := append(storageNames(), in.Own...)
	for _, entry := range entries {
		if slices.Contains(own, entry.Name()) || in.Known != nil && in.Known(filepath.Join(folder, entry.Name()), entry) {
			continue
		}
		f.Foreign = append(f.Foreign, entry.Name())
	}
	f.LogBytes, err = folderBytes(filepath.Join(folder, logDir))
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

func (f *Findings) checkMeta(folder string) error {
	err := bolt.Check(filepath.Join(folder, metaName))
	if errors.Is(err, vfs.ErrLocked) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		kept, lookErr := hasLogs(folder)
		if lookErr != nil {
			return lookErr
		}
		if !kept {
			return nil // nothing was ever described
		}
	}
	f.Meta = metaLost(folder, err)
	return nil
}

// checkKey sees whether a start would find the secret key that the store is sealed with.
func (f *Findings) checkKey(ctx context.Context, folder string, from SecretKey) error {
	if f.Meta != nil {
		return nil
	}
	keys, err := from.read(ctx, folder)
	missing := errors.Is(err, fs.ErrNotExist) && from.KeyFile == ""
	if err != nil && !missing {
		f.Key = err
		return nil
	}
	err = bolt.Entries(filepath.Join(folder, metaName), func(key string, value []byte) error {
		switch {
		case f.Key != nil || !sealed.IsSealed(value):
		case missing:
			f.Key = from.missing(folder)
		default:
			_, _, f.Key = keys.Open(key, value)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever described
	}
	return err
}

func (f *Findings) checkLog(ctx context.Context, folder string, in Inspection) error {
	if in.MaxLogBytes > 0 && f.LogBytes > in.MaxLogBytes {
		return nil
	}
	if _, err := os.Stat(filepath.Join(folder, logDir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	report, err := disk.Check(ctx, disk.Config{Dir: folder}, func(p disk.Progress) {
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
