// Package storage opens what a yard keeps its events and definitions in, from a URL. It is the only
// package that knows the engines: everybody else has the two contracts, eventlog.Engine and
// meta.Store.
//
//	disk://FOLDER         segment files and a bbolt file in a folder of this machine
//	nats://SERVER,SERVER  streams of NATS servers, which several nodes share
//	peer://FOLDER         the same with servers inside the nodes, of which one has the folder
package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/config/location"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

var (
	// ErrLocked: another yard uses the storage.
	ErrLocked = vfs.ErrLocked
	// ErrMetaLost: the folder holds events, but not the file that says whose they are. It comes
	// with fs.ErrNotExist.
	ErrMetaLost = errors.New(metaName + " is missing")
	// ErrForeign: the folder is not empty, and it is not a yard's.
	ErrForeign = errors.New("not the data folder of a yard")
	// ErrNoYard: there is none where one was to be.
	ErrNoYard = errors.New("there is no yard")
	// ErrPeerFolder: the folder is a peer's, and holds no whole yard. ErrOtherPeer: it is not that of
	// the peer whose bundle was given.
	ErrPeerFolder = errors.New("the data folder of a peer")
	ErrOtherPeer  = errors.New("not the data folder of this peer")
	// ErrNewerData: the folder has a format that only newer versions of the program know.
	ErrNewerData = errors.New("data of a newer version")
)

// Config says how storage is kept. Zero values have an engine's defaults.
type Config struct {
	// Sync says when an event counts as stored: always, interval or os.
	Sync string
	// SyncInterval is the longest an event waits for its sync when Sync is interval.
	SyncInterval time.Duration
	// SegmentBytes is the size of a partition's files.
	SegmentBytes int64
	// OpenSegments is how many of these files are open at most.
	OpenSegments int
	// SecretKey is where the key comes from that seals secrets.
	SecretKey SecretKey
	// Own are the names of what the yard has beside its storage in the folder, those of folders
	// before those of their files. No link may have one of them.
	Own []string
	// Program is who opens it, with its version: the mark of a folder names it.
	Program string
	// NATS is of storage on NATS servers. Peer is of storage on those inside the nodes, nil otherwise;
	// its bundle has the secret key.
	NATS NATS
	// MustExist refuses by ErrNoYard to make storage where there is none.
	MustExist bool
	Peer      *Peer
	// Log takes what an operator should know. Metrics takes the engine's counts.
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// markIn is where the mark is written; nil means in the folder. For tests.
	markIn vfs.FS
}

// Check tells what is wrong with the configuration by itself.
func (c Config) Check() error {
	_, err := disk.ParseSync(c.Sync)
	return errors.Join(err, c.SecretKey.Check())
}

// Storage is the two contracts, opened.
type Storage struct {
	Log  eventlog.Engine
	Meta meta.Store
	// Bodies keeps the larger bodies of blobs; nil where they are files in the folder.
	Bodies Bodies
	// Wire carries what nodes that share the storage ask each other; nil where there is one alone.
	Wire cluster.Wire
	// Writable finds out whether the servers that keep it take writes; nil where there are none. It
	// blocks until ctx ends at most.
	Writable func(context.Context) error
	// Servers finds out how the servers are that keep it; nil where there are none.
	Servers func(context.Context) Servers
	// Ready says why servers inside the nodes cannot store now, as far as this one knows; nil where there
	// are no servers. It waits for nobody.
	Ready func() error
	// Watch waits until this process has to be started again for the server inside to store, and gives
	// ErrStopped; else it ends with ctx, and no error. Nil where there are no servers.
	Watch func(context.Context) error
	// Tidy keeps what the servers hold of entries compact, until ctx ends, and gives no error then. It writes in forms
	// that a node may write only once it has joined the others. Nil where there are no servers.
	Tidy func(context.Context) error
	// Scrub reads all that each of the servers keeps, compares it, and judges what is in it, while it is
	// used; nil where there are none. It blocks until it is done, or ctx ends. The error is why it was not
	// done; what could not be looked at is in what it gives.
	Scrub func(context.Context, Scrubbing) (Scrubbed, error)
	// SetReplicas changes how many servers keep everything, while it is used; nil where there are none. It
	// blocks until it is done, or ctx ends; what was changed by then stays so. Errors: ErrTooFewServers,
	// ErrNotWell, ErrNotAllowed.
	SetReplicas func(context.Context, Replication) (ReplicationProgress, error)
	// Keys seal what else is secret in the folder; nil where they could not be made for want of
	// space.
	Keys *sealed.Keys
	// Folder is that of this machine which holds everything; the yard has files of its own in it.
	// Empty: other nodes share the storage, and there is none.
	Folder string
	// DiskFolder is the folder of this machine whose disk has data: Folder, or that of the server inside this process.
	// Empty: the data is on other machines.
	DiskFolder string
	// Local: nobody beyond this machine can reach the storage.
	Local bool
	// Engine is what clients are told of it: disk.
	Engine string
	// Replicas is how many servers keep each event; zero where there are none.
	Replicas int

	close func() error
}

// Close frees it for others. Nothing uses the contracts any more by then.
func (s *Storage) Close() error { return s.close() }

// Disk is the URL of a folder of this machine.
func Disk(folder string) string { return diskScheme + folder }

const diskScheme = "disk://"

// Open opens the storage at a URL, and makes it where there is none.
func Open(ctx context.Context, url string, cfg Config) (*Storage, error) {
	if connect.IsURL(url) {
		return openNATS(ctx, url, cfg)
	}
	if folder, is := strings.CutPrefix(url, peerScheme); is {
		return openPeer(ctx, folder, cfg)
	}
	folder, err := folderOf(url)
	if err != nil {
		return nil, err
	}
	return openDisk(ctx, folder, cfg)
}

// folderOf gives the folder of a URL. All that follows the scheme is its name, as the system writes
// it: nothing is escaped.
func folderOf(url string) (string, error) {
	if connect.IsURL(url) { // which may hold a secret
		settings, err := connect.Parse(url)
		return "", errors.Join(err, fmt.Errorf("%s is on servers, and only a data folder can be looked into: use %sFOLDER", settings, diskScheme))
	}
	folder, ok := strings.CutPrefix(url, diskScheme)
	if !ok || folder == "" {
		return "", fmt.Errorf("storage %q: use %sFOLDER", location.Shown(url), diskScheme)
	}
	return folder, nil
}
