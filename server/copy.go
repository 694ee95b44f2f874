package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Location is where a yard keeps everything.
type Location struct {
	// DataDir is a data folder. Engine, if it is not empty, is NATS servers instead, and NATSUnsafe
	// takes servers that may lose what they acknowledge; all as in Config.
	DataDir, Engine string
	NATSUnsafe      bool
	// Peer, if it has a bundle, is this machine's of the servers inside the nodes, with DataDir for its
	// folder, as in Restoration. No node runs on that folder meanwhile; of the others most run, or lend their
	// servers (TakePart), and all where a yard is copied there. Secrets are those of the bundle.
	Peer Peer
	// Secrets say where the secret key comes from, as in Config. Empty means the file secret.key of a
	// folder, which is made where it is the target.
	Secrets Secrets
}

func (p Location) config(version string, log *slog.Logger) Config {
	return Config{DataDir: p.DataDir, Engine: p.Engine, NATSUnsafe: p.NATSUnsafe, Peer: p.Peer, Secrets: p.Secrets, Version: version, Log: log}.withDefaults()
}

// Copying says what is copied, and where to.
type Copying struct {
	From, To Location
	// Version is that of the program.
	Version string
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Progress hears how many bytes were read of the source; nil means nobody.
	Progress func(bytes int64)
}

// Copied is what was copied.
type Copied struct {
	Events int64
	// Found are those of them that an interrupted call had copied: they were compared, and not copied again.
	Found            int64
	Logs, Partitions int
	// Bodies are those of larger blobs.
	Bodies int
	// Lost are sentences about what could not be read.
	Lost []string
}

// Copy copies a yard to where there is none, all with its numbers, times and secrets, which are sealed
// with the key of the target. A folder that is copied is not served meanwhile: ErrLocked. A yard on servers
// may be, and is copied as a backup is taken; if retention removes events that are being copied, it fails.
// At the end all partitions are read back and compared.
//
// When it returns all is durable, and a yard opens the target. After an error, or a crash, none does, and
// another call of the same source goes on with what is there, which is compared with the source first. If it
// is of something else, or the call had come as far as the last step, in which deliveries that wait are
// divided among nodes or united, it is removed and all is copied anew. The error is, by errors.Is, ErrNoYard, ErrOccupied, ErrYardOccupied,
// ErrRestoring, ErrLocked, or one that says what is wrong with the disk or the servers.
func Copy(ctx context.Context, c Copying) (Copied, error) {
	cfg := c.From.config(c.Version, c.Log)
	opening := cfg.storage(nil)
	opening.MustExist = true
	from, err := storage.Open(ctx, cfg.storageURL(), opening)
	if err != nil {
		return Copied{}, err
	}
	copied, err := c.copy(ctx, cfg, from)
	return copied, errors.Join(err, from.Close())
}

func (c Copying) copy(ctx context.Context, cfg Config, from *storage.Storage) (Copied, error) {
	blobs := blob.Config{Meta: from.Meta, Log: cfg.Log}
	if from.Bodies != nil {
		blobs.Bodies = from.Bodies
	} else {
		blobs.FS = vfs.OS(filepath.Join(from.Folder, blobDir))
	}
	stored, err := blob.Open(blobs)
	if err != nil {
		return Copied{}, err
	}
	source, err := cfg.source(from, stored, cfg.Namespace)
	if err != nil {
		return Copied{}, err
	}
	highest, err := highestRevision(ctx, from)
	if err != nil {
		return Copied{}, err
	}
	what := storage.Restored{Keys: from.Keys, Revision: highest, Continue: true, Keep: []string{blobDir}}
	copied, err := c.to(ctx, source, what)
	if errors.Is(err, backup.ErrOther) {
		cfg.Log.Warn("what an interrupted copy has left at the target is not of this yard: it is removed, and all is copied", "error", err)
		what.Continue = false
		copied, err = c.to(ctx, source, what)
	}
	return copied, err
}

// to copies to the target, which is opened for it.
func (c Copying) to(ctx context.Context, source backup.Source, what storage.Restored) (Copied, error) {
	target := c.To.config(c.Version, c.Log)
	to, err := storage.Restore(ctx, target.storageURL(), target.storage(nil), what)
	if err != nil {
		return Copied{}, err
	}
	target.sayFewer(source.Head.Replicas, to.Replicas)
	return c.pass(ctx, source, target, to)
}

// highestRevision is that of all entries.
func highestRevision(ctx context.Context, from *storage.Storage) (highest meta.Revision, err error) {
	err = from.Entries(ctx, func(e meta.Entry) error {
		highest = max(highest, e.Revision)
		return nil
	})
	return highest, err
}

// pass has one goroutine write the archive that this one restores.
func (c Copying) pass(ctx context.Context, source backup.Source, target Config, to *storage.Restoring) (Copied, error) {
	in, out := io.Pipe()
	taken := make(chan Copied, 1)
	var found int64
	go func() {
		items, err := backup.Take(ctx, source, out)
		sum := backup.Summarize(source.Head, items, 0)
		taken <- Copied{Events: sum.Events, Logs: sum.Logs, Partitions: sum.Partitions, Bodies: sum.Bodies, Lost: sum.Lost}
		_ = out.CloseWithError(err) // it gives none
	}()
	err := fill(ctx, target, to, func(ctx context.Context, t backup.Target) (err error) {
		t.Progress, t.ReadBack = c.Progress, true
		if t.Continued != nil {
			t.Continued.Found = func(events int) { found += int64(events) }
			if t.Continued.Logs, err = logNames(ctx, source.Log); err != nil {
				return err
			}
		}
		return backup.Restore(ctx, in, nil, t)
	})
	_ = in.CloseWithError(errors.Join(errStopping, err)) // it gives none
	copied := <-taken
	copied.Found = found
	return copied, err
}

// logNames are those of the logs that are there now, and nil where the engine does not tell.
func logNames(ctx context.Context, engine eventlog.Engine) ([]string, error) {
	archivable, ok := engine.(eventlog.Archivable)
	if !ok {
		return nil, nil
	}
	logs, err := archivable.Logs(ctx)
	names := make([]string, len(logs))
	for i, log := range logs {
		names[i] = log.Name
	}
	return names, err
}
