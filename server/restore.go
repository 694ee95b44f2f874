package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/activity/journal"
	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/transport/certs"
)

// Restoration says what is restored, and where to.
type Restoration struct {
	// Backup is the folder of a backup, as eventyard backup writes it.
	Backup string
	// DataDir is the folder that a yard will be started on: it does not exist, or is empty, but for a
	// copy of the secret key of the yard that the backup is of, secret.key. Empty means eventyard-data.
	DataDir string
	// Engine, if it is NATS servers, is where the yard is restored to in place of a folder, as in Config:
	// there is no yard of that name yet. NATSUnsafe is as in Config, too.
	Engine     string
	NATSUnsafe bool
	// Peer, if it has a bundle, is this machine's of the servers inside the nodes to which the yard is
	// restored, with DataDir for its folder. The other peers run meanwhile; see TakePart. Secrets are those
	// of the backup then, unless they are that of the bundle, with which all is sealed.
	Peer Peer
	// Secrets say where the secret key comes from, unless it is in the folder, as in Config. All keys that
	// the backup was sealed with are among them; on servers secrets are sealed anew with the newest.
	Secrets Secrets
	// Version is that of the program.
	Version string
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Progress hears how far reading the backup has come; nil means nobody.
	Progress func(done, total int64)
}

// Restore makes a data folder, or a yard on NATS servers, from a backup. All of it is durable when it
// returns, and a yard opens it. After an error, or a crash, no yard does, and another call begins again.
// The error is, by errors.Is, ErrOccupied, ErrYardOccupied, ErrNoKey, ErrLocked, ErrRestoring, or one that
// says what is wrong with the backup, the disk or the servers.
func Restore(ctx context.Context, r Restoration) error {
	from, err := backup.Open(r.Backup)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	cfg := Config{DataDir: r.DataDir, Engine: r.Engine, NATSUnsafe: r.NATSUnsafe, Peer: r.Peer, Secrets: r.Secrets, Version: r.Version, Log: r.Log}.withDefaults()
	to, err := storage.Restore(ctx, cfg.storageURL(), cfg.storage(nil), storage.Restored{
		SecretKeys: from.Summary.SecretKeys, Revision: from.Summary.Revision,
	})
	if err != nil {
		return err
	}
	cfg.sayFewer(from.Summary.Replicas, to.Replicas)
	return fill(ctx, cfg, to, func(ctx context.Context, target backup.Target) error {
		if r.Progress != nil {
			target.Progress = func(read int64) { r.Progress(read, from.Summary.Bytes) }
		}
		return from.Restore(ctx, target)
	})
}

// TakePart runs this machine's server of a yard whose servers are inside the nodes, and no node, until ctx
// ends, so that Restore or Copy can fill the yard at another of its peers. running is called when the server
// runs. Location has Peer. Errors are as those of Server.Run.
func TakePart(ctx context.Context, at Location, version string, log *slog.Logger, running func()) error {
	cfg := at.config(version, log)
	return storage.LendPeer(ctx, cfg.DataDir, cfg.storage(nil), running)
}

// sayFewer says that each event will be kept by fewer servers than before.
func (c Config) sayFewer(before, now int) {
	if 0 < now && now < before {
		c.Log.Warn("each event is kept by fewer servers than in the yard that it comes from", "replicas", now, "before", before)
	}
}

// fill has an archive restored to storage, makes of it what the storage's kind of yard has, and finishes
// it. restore ends with its context.
func fill(ctx context.Context, cfg Config, to *storage.Restoring, restore func(context.Context, backup.Target) error) error {
	f, err := newFilling(cfg, to)
	if err != nil {
		return errors.Join(err, to.Close())
	}
	defer func() { _ = os.RemoveAll(f.aside) }() // at worst sealed files are left among those of a while
	filling, cancel := to.Under(ctx)
	defer cancel()
	if err = restore(filling, f.target(filling)); err == nil {
		err = to.Adapt(filling)
	}
	if err == nil {
		err = f.adapt(filling)
	}
	if err != nil {
		if lost := context.Cause(filling); errors.Is(lost, ErrRestoring) {
			err = lost
		}
		return errors.Join(err, to.Close())
	}
	return to.Finish(ctx)
}

// filling is storage that is filled from an archive.
type filling struct {
	to     *storage.Restoring
	bodies blob.Stored
	// folder is that of the yard; empty where it is on servers. Then files are put aside.
	folder, aside string
	hubLogs       map[string]bool // the logs of hubs, as the entries say
}

func newFilling(cfg Config, to *storage.Restoring) (f *filling, err error) {
	f = &filling{to: to, hubLogs: map[string]bool{}}
	if to.Bodies != nil {
		f.bodies = blob.RestoreTo(to.Bodies)
		f.aside, err = os.MkdirTemp("", "eventyard-restore-*")
		return f, err
	}
	f.folder = cfg.DataDir
	f.bodies, err = blob.Restore(vfs.OS(filepath.Join(f.folder, blobDir)))
	return f, err
}

// target is how the archive is restored. What is on servers is read back: others have it in their hands.
func (f *filling) target(ctx context.Context) backup.Target {
	dir, kind := f.folder, (func(string) eventlog.Kind)(nil)
	if dir == "" {
		dir, kind = f.aside, f.kind
	}
	t := backup.Target{
		Meta: f.to.Meta, Entry: f.entry, Log: f.to.Log, Kind: kind, ReadBack: f.folder == "",
		PutBody: func(name string, body io.Reader) error { return f.bodies.Put(ctx, name, body) },
		PutFile: func(name string, content io.Reader) error { return putFile(dir, name, content) },
	}
	if f.to.Continued {
		t.Continued = &backup.Continued{
			Local: f.to.Local, Same: f.to.Same,
			OpenBody: func(name string) (io.ReadCloser, error) { return f.bodies.Open(ctx, name) },
		}
	}
	return t
}

// entry notes the logs of hubs on the way.
func (f *filling) entry(e meta.Entry) (meta.Entry, bool, error) {
	if strings.HasPrefix(e.Key, "hubs/") {
		var hub struct{ Log string }
		if err := json.Unmarshal(e.Value, &hub); err != nil {
			return e, false, fmt.Errorf("read entry %s: %w", e.Key, err)
		}
		f.hubLogs[hub.Log] = true
	}
	return f.to.Entry(e)
}

// kind is that of a log which nobody had used when the archive was made.
func (f *filling) kind(log string) eventlog.Kind {
	if f.hubLogs[log] {
		return eventlog.KindHub
	}
	kind, ok := retrylog.KindOf(log)
	switch {
	case ok:
		return kind
	case strings.HasPrefix(log, "topic-"):
		return eventlog.KindTopic
	case strings.HasPrefix(log, "dead-"), log == journal.LogName:
		return eventlog.KindDeadLetters
	}
	return eventlog.KindHub
}

// adapt makes of what one kind of yard has what the other has: nodes divide the grid's work into shards,
// and have their authority among the entries.
func (f *filling) adapt(ctx context.Context) error {
	store, engine := f.to.Opened(), f.to.Log
	if f.folder == "" {
		return errors.Join(retrylog.Divide(ctx, engine, store), delivery.DivideCursors(ctx, store), f.shareAuthority(ctx, store))
	}
	return errors.Join(retrylog.Unite(ctx, engine, store), delivery.UniteCursors(ctx, store), deadletter.ClearEpochs(ctx, store), f.ownAuthority(ctx, store))
}

// shareAuthority has the authority of a folder be that of all nodes. Certificates they make themselves.
func (f *filling) shareAuthority(ctx context.Context, store meta.Store) error {
	if f.to.Source == nil {
		return nil
	}
	text, err := certs.ReadAuthority(filepath.Join(f.aside, CertificateDir), f.to.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = authorityEntries{store}.Set(ctx, text, 0)
	}
	return err
}

// ownAuthority has the authority of all nodes be that of the folder.
func (f *filling) ownAuthority(ctx context.Context, store meta.Store) error {
	text, revision, err := authorityEntries{store}.Get(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := filepath.Join(f.folder, CertificateDir)
	if err == nil {
		err = vfs.OS(dir).MkdirAll(".")
	}
	if err == nil {
		err = certs.WriteAuthority(dir, text, f.to.Keys)
	}
	if err == nil {
		err = store.Delete(ctx, authorityEntry, meta.Revision(revision))
	}
	return err
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
