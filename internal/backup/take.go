// Package backup copies all that a serving yard keeps into an archive, and an archive into empty
// storage. It knows the two contracts, and no engine.
//
// # The cut
//
// Entries are read first, all as of one moment T0; logs after it, each partition up to where it ends
// when its turn comes. So an entry that names a number of a log, as checkpoints and cursors do, never
// names one past the end of what is restored: work that was done after T0 is done again, and none is
// skipped. Logs that events move between (retry logs, parked logs, dead letters) come before those that
// their records point into (topics, hubs), so that nothing points past an end either. What Trim allows
// to be removed of them stays from before T0 until they were read: else an event that moves from a log
// that comes late to one that was read already would be in neither.
//
// A log that is removed meanwhile goes on, without events, where it had ended: what entries of T0 say of
// its numbers must not be true of others. So partitions are looked at before T0 too.
//
// Bodies of blobs have names that are used once, and what entries name at T0 is kept until it was read.
package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Source is what is copied. All of it is used while others use it.
type Source struct {
	// Head says whose it is.
	Head archive.Head
	// Entries visits all entries as of one moment, secrets sealed, as meta.Snapshot does.
	Entries func(ctx context.Context, visit func(meta.Entry) error) error
	// Spool makes a file to keep the entries in, which is gone when it is closed. So clients that are
	// slow do not hold up the store.
	Spool func() (io.ReadWriteCloser, error)
	// Log is also an eventlog.Archivable.
	Log eventlog.Engine
	// Bodies are those of blobs.
	Bodies Bodies
	// Files are small files of the yard, by name. One that is not there is left out.
	Files []string
	// ReadFile reads one of them.
	ReadFile func(name string) ([]byte, error)
}

// Bodies are the bodies of blobs that are too large for their entries.
type Bodies interface {
	// Hold has every body stay until release is called, which is safe twice. An error of release says
	// that some may be gone.
	Hold(ctx context.Context) (release func(context.Context) error, err error)
	// Named gives the names of the bodies that an entry names; none for most entries.
	Named(e meta.Entry) ([]string, error)
	// Open reads one, until ctx ends. The error is fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// Take writes an archive of the source. Nothing is written before all entries were read. It holds no more memory than the largest batch or entry takes, a
// few times, and holds up no writer. Errors: those of out, of the storage, or ctx's. If it can, it notes
// in the archive why there is no more of it. What could not be read of the source is in the items that
// it gives, and no error.
func Take(ctx context.Context, s Source, out io.Writer) ([]archive.Item, error) {
	engine, ok := s.Log.(eventlog.Archivable)
	if !ok {
		return nil, fmt.Errorf("back up: %w by this storage", errors.ErrUnsupported)
	}
	t := &taking{
		Source: s, engine: engine,
		found: map[string]eventlog.Described{}, partitions: map[eventlog.PartitionID]eventlog.Partition{},
	}
	defer t.letGo(ctx)
	if err := t.hold(ctx); err != nil {
		return nil, err
	}
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	spool, err := t.spool(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = spool.Close() }() // it was only read
	if t.w, err = archive.NewWriter(out, s.Head); err != nil {
		return nil, err
	}
	if err := t.all(ctx, spool); err != nil {
		_ = t.w.Fail(err.Error()) // who is gone will not read it
		return t.w.Items(), err
	}
	return t.w.Items(), t.w.Finish()
}

// taking is one backup under way.
type taking struct {
	Source
	engine eventlog.Archivable
	w      *archive.Writer
	// found are the logs there are or were, and partitions their handles, which know where they ended.
	found      map[string]eventlog.Described
	partitions map[eventlog.PartitionID]eventlog.Partition
	// letBodies and letTrimmed end what is held of the source; nil: nothing is.
	letBodies, letTrimmed func(context.Context) error
}

// hold has what is in the source now stay there.
func (t *taking) hold(ctx context.Context) (err error) {
	if t.letBodies, err = t.Bodies.Hold(ctx); err != nil {
		return err
	}
	t.letTrimmed, err = t.engine.Hold(ctx)
	return err
}

// letGoTime is how long a backup that has ended may take to say so.
const letGoTime = 10 * time.Second

// letGo ends what is still held, also where ctx has ended. If that fails it ends by itself later.
func (t *taking) letGo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letGoTime)
	defer cancel()
	for _, release := range []func(context.Context) error{t.letBodies, t.letTrimmed} {
		if release != nil {
			_ = release(ctx)
		}
	}
}

func (t *taking) all(ctx context.Context, spool *spooled) error {
	if err := t.entries(spool); err != nil {
		return err
	}
	if err := t.look(ctx); err != nil { // for those that were made since
		return err
	}
	logs := slices.SortedFunc(maps.Values(t.found), func(a, b eventlog.Described) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	rest := slices.IndexFunc(logs, func(l eventlog.Described) bool { return rank(l) >= rankTopic })
	if rest < 0 {
		rest = len(logs)
	}
	if err := t.logs(ctx, logs[:rest]); err != nil {
		return err
	}
	if err := t.letTrimmed(ctx); err != nil {
		return fmt.Errorf("what was moved from log to log meanwhile may be missing, begin again: %w", err)
	}
	if err := t.bodies(ctx, spool); err != nil {
		return err
	}
	if err := t.letBodies(ctx); err != nil {
		return fmt.Errorf("bodies of blobs may be missing, begin again: %w", err)
	}
	if err := t.files(); err != nil {
		return err
	}
	return t.logs(ctx, logs[rest:])
}

// look finds the logs, and what is in those that it did not know.
func (t *taking) look(ctx context.Context) error {
	logs, err := patiently(ctx, func() ([]eventlog.Described, error) { return t.engine.Logs(ctx) })
	if err != nil {
		return err
	}
	for _, log := range logs {
		t.found[log.Name] = log
		for number := range log.Shape.Partitions {
			id := eventlog.PartitionID{Log: log.Name, Number: number}
			if t.partitions[id] != nil {
				continue
			}
			p, err := t.Log.Partition(id)
			if err == nil {
				_, err = patiently(ctx, func() (eventlog.Bounds, error) { return p.Bounds(ctx) })
			}
			switch {
			case err == nil:
				t.partitions[id] = p
			case !errors.Is(err, eventlog.ErrRemoved):
				return fmt.Errorf("back up %s: %w", id, err)
			}
		}
	}
	return nil
}

// The order of logs: what points into another comes before it.
const (
	rankRetry = iota
	rankDead
	rankTopic
	rankHub
)

// rank of a log that nobody has provided is the first: nobody uses it, so that its turn does not matter.
func rank(l eventlog.Described) int {
	switch {
	case !l.Known:
		return rankRetry
	case l.Shape.Kind == eventlog.KindHub:
		return rankHub
	case l.Shape.Kind == eventlog.KindTopic:
		return rankTopic
	case l.Shape.Kind == eventlog.KindDeadLetters:
		return rankDead
	}
	return rankRetry
}

// spooled is a file with all entries, each as a record of an archive of its own.
type spooled struct{ io.ReadWriteCloser }

// spool has all entries of one moment in a file.
func (t *taking) spool(ctx context.Context) (*spooled, error) {
	file, err := t.Spool()
	if err != nil {
		return nil, fmt.Errorf("make a file for the entries: %w", err)
	}
	w, err := archive.NewWriter(file, archive.Head{})
	if err == nil {
		err = w.Begin(archive.Item{Type: archive.TypeEntries})
	}
	if err == nil {
		err = t.Entries(ctx, w.Entry)
	}
	if err == nil {
		err = w.End(nil)
	}
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &spooled{file}, nil
}

// each visits the entries of the file.
func (s *spooled) each(visit func(meta.Entry) error) error {
	if seeker, ok := s.ReadWriteCloser.(io.Seeker); ok {
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	r, err := archive.NewReader(s)
	for err == nil {
		var part archive.Part
		if part, err = r.Next(); err == nil && part.Entry != nil {
			err = visit(*part.Entry)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (t *taking) entries(from *spooled) error {
	if err := t.w.Begin(archive.Item{Type: archive.TypeEntries}); err != nil {
		return err
	}
	if err := from.each(t.w.Entry); err != nil {
		return err
	}
	return t.w.End(nil)
}

func (t *taking) bodies(ctx context.Context, from *spooled) error {
	return from.each(func(e meta.Entry) error {
		names, err := t.Bodies.Named(e)
		for _, name := range names {
			if err == nil {
				err = t.body(ctx, name)
			}
		}
		return err
	})
}

// body copies one. What cannot be read of it is noted: that is the blob's end, and no other's.
func (t *taking) body(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := t.w.Begin(archive.Item{Type: archive.TypeBody, Name: name}); err != nil {
		return err
	}
	missing := ""
	body, err := t.Bodies.Open(ctx, name)
	if err == nil {
		reader := &reading{Reader: body}
		if _, err := io.CopyBuffer(justWriter{t.w}, reader, make([]byte, 128<<10)); err != nil && reader.err == nil {
			return errors.Join(err, body.Close())
		}
		err = errors.Join(reader.err, body.Close())
	}
	if ctx.Err() != nil { // not the body's fault
		return context.Cause(ctx)
	}
	if err != nil {
		missing = err.Error()
	}
	return t.w.End(func(i *archive.Item) { i.Missing = missing })
}

// reading tells the errors of what is read from those of what is written.
type reading struct {
	io.Reader
	err error
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// justWriter hides all but Write.
type justWriter struct{ io.Writer }

func (t *taking) files() error {
	for _, name := range t.Files {
		content, err := t.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if err := t.w.Begin(archive.Item{Type: archive.TypeFile, Name: name}); err != nil {
			return err
		}
		if _, err := io.Copy(justWriter{t.w}, bytes.NewReader(content)); err != nil {
			return err
		}
		if err := t.w.End(nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) logs(ctx context.Context, logs []eventlog.Described) error {
	for _, log := range logs {
		for number := range log.Shape.Partitions {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := t.partition(ctx, log, number); err != nil {
				return fmt.Errorf("back up partition %d of log %s: %w", number, log.Name, err)
			}
		}
	}
	return nil
}

// begun is the item of a partition before it was read.
func begun(log eventlog.Described, number int) archive.Item {
	p := &archive.Partition{Number: number, Partitions: log.Shape.Partitions}
	if log.Known {
		p.Kind = log.Shape.Kind.String()
		p.RetentionMillis, p.RetentionBytes = int64(log.Shape.Retention.Age/time.Millisecond), log.Shape.Retention.Bytes
	}
	return archive.Item{Type: archive.TypePartition, Name: log.Name, Partition: p}
}
