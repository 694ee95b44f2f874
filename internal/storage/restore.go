package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/connect"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

var (
	// ErrRestoring: a restore into the folder is under way, or was interrupted.
	ErrRestoring = errors.New("a restore is not finished")
	// ErrOccupied: the folder holds something, so that nothing is restored there.
	ErrOccupied = errors.New("the data folder is not empty")
	// ErrYardOccupied: there is a yard of that name on the servers, so that nothing is restored there.
	ErrYardOccupied = errors.New("the yard is not empty")
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
	// SecretKeys are the ids of the keys that entries are sealed with, as Entries gave them; nil where
	// that is not known yet.
	SecretKeys []string
	// Keys open what is sealed. Nil: they are those that Config gives to the storage itself, or a
	// SecretKeyFile in the folder. What other keys have sealed is sealed anew with those.
	Keys *sealed.Keys
	// Revision is the highest of an entry. All revisions that a folder gives from now on are above it,
	// and above those that the yard gave after the backup.
	Revision meta.Revision
	// Continue has what an interrupted restore has left stay, but for a folder's entries and files: logs,
	// bodies of blobs, which are what Keep names of Config.Own, and entries on servers. If that one had
	// come as far as Adapt, all of it is removed even so.
	Continue bool
	Keep     []string
}

// Restoring is storage that is being filled. Until Finish has returned nothing opens it.
type Restoring struct {
	Log eventlog.Engine
	// Meta takes values as Entry gives them, secrets sealed.
	Meta meta.Store
	// Bodies keeps the larger bodies of blobs; nil where they are files in the folder.
	Bodies Bodies
	// Replicas is how many servers keep each event; zero where a folder holds all.
	Replicas int
	// Keys seal it, and Source opens what is restored; nil where nothing is sealed.
	Keys, Source *sealed.Keys
	// Continued: an interrupted restore has left something, which stays as Restored.Continue says.
	Continued bool

	anew   bool               // what is sealed is sealed anew
	lost   [2]<-chan struct{} // closed when others take this process for dead, or may do so; nil: nobody does
	adapt  func(context.Context) error
	finish func(context.Context) error
	close  func() error
}

// Restore makes storage at a URL to restore a backup to, which is empty.
//
// A folder is empty but for a SecretKeyFile, or does not exist, or has what an interrupted restore has
// left, which is removed. It is marked before anything is written to it, so that no program opens it as a
// yard's. A yard on servers has no streams, or what an interrupted restore has left; it is marked likewise,
// and secrets are sealed anew with the newest of the keys given to it, or with that of a peer's bundle.
//
// Errors: ErrOccupied, ErrYardOccupied, ErrNoKey, ErrLocked, ErrRestoring, or that of the disk or the servers; after the
// first three nothing was changed.
func Restore(ctx context.Context, url string, cfg Config, what Restored) (*Restoring, error) {
	if connect.IsURL(url) {
		return restoreNATS(ctx, url, cfg, what)
	}
	if folder, is := strings.CutPrefix(url, peerScheme); is {
		return restorePeer(ctx, folder, cfg, what)
	}
	folder, err := folderOf(url)
	if err != nil {
		return nil, err
	}
	if err := restorable(folder, cfg); err != nil {
		return nil, err
	}
	keys, source := (*sealed.Keys)(nil), what.Keys
	if source == nil {
		if keys, err = cfg.SecretKey.thatOpen(ctx, folder, what.SecretKeys); err != nil {
			return nil, err
		}
		source = keys
	}
	if err := vfs.OS(folder).MkdirAll("."); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f := &fillingFolder{folder: folder, cfg: cfg, id: rand.Text(), what: what}
	f.engine, err = disk.Open(disk.Config{
		Dir: folder, SegmentBytes: cfg.SegmentBytes, OpenSegments: cfg.OpenSegments, Log: cfg.Log, Claimed: f.claim,
	})
	if err != nil {
		return nil, err
	}
	if f.store, err = bolt.Open(metaConfig(folder, cfg, false)); err == nil {
		err = f.store.Raise(ctx, raised(what.Revision))
	}
	if err == nil && what.Keys != nil {
		keys, err = cfg.SecretKey.keys(ctx, folder, f.store)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Restoring{
		Log: f.engine, Meta: f.store, Keys: keys, Source: source, Continued: f.continued, anew: what.Keys != nil,
		adapt: f.Adapt, finish: f.Finish, close: f.Close,
	}, nil
}

// local are the prefixes of entries that belong to where they are: what an engine knows of its logs,
// who serves and reads, and by which numbers, what storage notes of itself, and what endpoints did to one node.
var local = []string{"logs/", "nodes/", "brokers/", "places/", "storage/", "grid/probation/", holds.Prefix}

// Local tells whether the entry of a key belongs to where it is.
func (r *Restoring) Local(key string) bool {
	return slices.ContainsFunc(local, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Same tells whether two entries of one key, as they are stored here, say the same.
func (r *Restoring) Same(a, b meta.Entry) bool {
	if r.Keys == nil || bytes.Equal(a.Value, b.Value) {
		return bytes.Equal(a.Value, b.Value)
	}
	is, _, err := r.Keys.Open(a.Key, a.Value)
	wanted, _, failed := r.Keys.Open(b.Key, b.Value)
	return err == nil && failed == nil && bytes.Equal(is, wanted)
}

// Entry gives what is to be stored of an entry, and false for one that belongs to where it came from. An
// error says why it cannot be used: its secret was changed since it was sealed, or the key is missing.
func (r *Restoring) Entry(e meta.Entry) (meta.Entry, bool, error) {
	if r.Local(e.Key) {
		return e, false, nil
	}
	_, secret := sealed.KeyOf(e.Value)
	if r.Source == nil || !secret {
		return e, true, nil
	}
	value, _, err := r.Source.Open(e.Key, e.Value)
	if err != nil {
		return e, false, err
	}
	if r.anew {
		e.Value = r.Keys.Seal(e.Key, value)
	}
	return e, true, nil
}

// Opened gives the entries with their secrets opened, for who changes some after all were stored.
func (r *Restoring) Opened() meta.Store {
	if r.Keys == nil {
		return r.Meta
	}
	return sealed.New(r.Meta, r.Keys)
}

// Under gives the context in which it is filled: it ends with ctx, with cancel, and when others have taken
// this process for dead, with ErrRestoring for its cause. cancel is called in any case.
func (r *Restoring) Under(ctx context.Context) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-r.lost[0]:
		case <-r.lost[1]:
		case <-ctx.Done():
			return
		}
		end(fmt.Errorf("%w: others have taken this process for dead, since it was not heard of for too long", ErrRestoring))
	})
	return ctx, func() {
		end(nil)
		watching.Wait()
	}
}

// Adapt is called before what was restored is changed, so that it is none any more which can be continued.
func (r *Restoring) Adapt(ctx context.Context) error { return r.adapt(ctx) }

// Finish makes it the storage of a yard, once all of it is durable. Nothing else uses it by then. After an
// error it is not.
func (r *Restoring) Finish(ctx context.Context) error { return r.finish(ctx) }

// Close frees it; it stays marked as unfinished unless Finish was called. Safe twice.
func (r *Restoring) Close() error { return r.close() }

// fillingFolder is a folder that is being filled.
type fillingFolder struct {
	folder string
	cfg    Config
	id     string
	what   Restored
	engine *disk.Engine
	store  *bolt.Store

	continued bool // something was left, and stays
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
	return keys, opens(keys, ids)
}

// opens says by ErrNoKey which key is not among those that were given.
func opens(keys *sealed.Keys, ids []string) error {
	for _, id := range ids {
		if !keys.Has(id) {
			return fmt.Errorf("%w: it is sealed with key %s, and another one was given", ErrNoKey, id)
		}
	}
	return nil
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
func (r *fillingFolder) claim() error {
	if err := restorable(r.folder, r.cfg); err != nil { // again: another process may have been here before the lock
		return err
	}
	stay := []string{markName, lockName, SecretKeyFile}
	if found, err := examine(r.folder, r.cfg.Own); err != nil {
		return err
	} else if r.what.Continue && found.kind == marked && !found.mark.Adapting {
		r.continued = true
		stay = append(append(stay, logDir, journalDir, spareDir, trashDir), r.what.Keep...)
	}
	if err := r.note(mark{Adapting: !r.continued}); err != nil {
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
		if !ours || slices.Contains(stay, name) {
			continue
		}
		if err := folder.RemoveAll(name); err != nil {
			return fmt.Errorf("remove what an interrupted restore has left: %w", err)
		}
	}
	if err := folder.SyncDir("."); err != nil {
		return err
	}
	return r.note(mark{})
}

// note writes the mark of a restore that is under way.
func (r *fillingFolder) note(m mark) error {
	m.Format, m.Program, m.Restoring = restoringFormat, r.cfg.Program, r.id
	return r.cfg.put(r.folder, m)
}

// Adapt is Restoring's.
func (r *fillingFolder) Adapt(context.Context) error { return r.note(mark{Adapting: true}) }

// Finish makes it the data of a yard, once all of it is durable. Nothing else uses it by then. After an
// error it is not.
func (r *fillingFolder) Finish(context.Context) error {
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
func (r *fillingFolder) Close() error {
	err := r.engine.Close()
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}
