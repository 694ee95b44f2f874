package server

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// Inspection says how to look into what a yard keeps everything in.
type Inspection struct {
	// DataDir is the folder; empty means eventyard-data.
	DataDir string
	// Engine is disk, or the URL of servers that are looked at in place of DataDir; empty means disk.
	Engine string
	// Peer is looked at in place of both, if it has a bundle: whether it could start on DataDir, and
	// which others answer. Findings has Servers, Problems, Warnings and InUse then.
	Peer Peer
	// Secrets is where the secret key comes from, as in Config.
	Secrets Secrets
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
	// Key is why the secret key does not open what is sealed in a meta store that is sound; nil: it does,
	// or nothing is sealed.
	Key error
	// LogBytes is the size of all files with events.
	LogBytes int64
	// LogRead: they were read through; the rest is known only then.
	LogRead              bool
	Partitions, Segments int
	Events               int64
	// Problems are sentences: where, what, and which events.
	Problems []string
	// Foreign are files that are not a yard's. They are left alone.
	Foreign []string
	// Servers are the names of those that were asked, where Engine names servers; then only Problems
	// and Warnings are known besides. Both are about how the servers are set.
	Servers, Warnings []string
}

// Inspect verifies all that a data folder holds, changing nothing. The error is
// fs.ErrNotExist where there is no such folder, or nothing in it yet; ErrForeign or ErrNewerData
// where serve would refuse it. Of servers it verifies how they are set.
func Inspect(ctx context.Context, in Inspection) (Findings, error) {
	url := storageOf(in.DataDir)
	if in.Engine != "" && in.Engine != "disk" {
		url = in.Engine
	}
	if in.Peer.Bundle != nil {
		url = storage.PeerOf(Config{DataDir: in.DataDir}.withDefaults().DataDir)
	}
	found, err := storage.Inspect(ctx, url, storage.Inspection{
		Peer:        in.Peer.storage(),
		Own:         ownNames(),
		Known:       func(path string, entry fs.DirEntry) bool { return entry.IsDir() && hasDeadLetters(path) },
		SecretKey:   storage.SecretKey(in.Secrets),
		MaxLogBytes: in.MaxLogBytes, Progress: in.Progress,
	})
	return Findings(found), err
}

// Running reports whether a yard runs on a data folder; empty means eventyard-data.
func Running(dataDir string) (bool, error) { return storage.InUse(storageOf(dataDir)) }

// ownNames are what a yard has in the data folder beside its storage.
func ownNames() []string {
	names := []string{
		ConnectionStringFile, ConnectionStringFile + vfs.UnfinishedSuffix, CertificateDir, blobDir, NodeFile, NodeFile + vfs.UnfinishedSuffix,
	}
	for _, file := range certs.OwnFiles() {
		names = append(names, filepath.Join(CertificateDir, file))
	}
	return names
}

func storageOf(dataDir string) string {
	return storage.Disk(Config{DataDir: dataDir}.withDefaults().DataDir)
}
