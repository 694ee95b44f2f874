package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Config is what the store works with.
type Config struct {
	// Meta keeps the entries; required.
	Meta meta.Store
	// FS is the folder of the larger bodies, which holds nothing else; required, unless Bodies are
	// given, which other nodes have as well.
	FS     vfs.FS
	Bodies Bodies
	// Grace is how long shared bodies stay that nobody names; zero means an hour. A write that takes
	// longer from when it begins to store a body until that is named fails, and a read may.
	Grace time.Duration
	// Tends tells whether this node clears away what is left; of nodes that share bodies only one
	// should. Nil means that it does.
	Tends func() bool
	// SweepEvery is how often files without a name are looked for; zero means every hour.
	SweepEvery time.Duration
	// Log takes what was swept; nil means slog.Default().
	Log *slog.Logger
}

// Service is a blob store. All methods may be called by many goroutines at once.
type Service struct {
	meta   meta.Store
	bodies *held
	holds  *holds.Looker // used by the one sweep at a time; nil where nobody else has the bodies
	tends  func() bool
	every  time.Duration
	log    *slog.Logger

	folders checkpointFolders
}

// Open makes the folder. It starts no goroutine; Run does the rest.
func Open(cfg Config) (*Service, error) {
	if cfg.Meta == nil || (cfg.FS == nil) == (cfg.Bodies == nil) {
		return nil, errors.New("open blobs: both a meta store and a folder, or bodies in its place, are required")
	}
	s := &Service{
		meta: cfg.Meta, tends: cfg.Tends, every: cmp.Or(cfg.SweepEvery, time.Hour), log: cmp.Or(cfg.Log, slog.Default()),
	}
	if s.tends == nil {
		s.tends = func() bool { return true }
	}
	if cfg.Bodies != nil {
		s.bodies = newHeld(cfg.Bodies, cmp.Or(cfg.Grace, time.Hour))
		s.holds = holds.NewLooker(cfg.Meta, holds.Bodies)
		return s, nil
	}
	files, err := openFiles(cfg.FS)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	s.bodies = newHeld(files, 0)
	return s, nil
}

// fresh has the reads that follow see whatever was acknowledged to anybody before. To clients all nodes
// are one account: what one has written through a node it, or another, reads or changes on condition
// through another at once. Each operation calls it once; where there is one node only it is for free.
func (s *Service) fresh(ctx context.Context) error { return s.meta.Fresh(ctx, allPrefix) }

// get reads an entry; a nil one and revision zero if there is none.
func get[T any](ctx context.Context, s *Service, key string) (*T, meta.Revision, error) {
	entry, err := s.meta.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	stored, err := decode[T](entry)
	return stored, entry.Revision, err
}

// change reads an entry and lets it be changed, again if somebody else was faster: each time that
// happens somebody has got on. What decide returns as nil is deleted. The outcome is waited for
// also where the caller has gone: a change that is under way cannot be taken back, and until it is
// made or not nobody knows whether its file has a name.
func change[T any](ctx context.Context, s *Service, key string, decide func(old *T) (*T, error)) (old, changed *T, err error) {
	for {
		old, revision, err := get[T](ctx, s, key)
		if err != nil {
			return nil, nil, err
		}
		changed, err := decide(old)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		if changed != nil {
			_, err = s.meta.CompareAndSet(context.WithoutCancel(ctx), key, revision, encode(changed))
		} else if revision != 0 {
			err = s.meta.Delete(context.WithoutCancel(ctx), key, revision)
		}
		switch {
		case err == nil:
			return old, changed, nil
		case errors.Is(err, meta.ErrNoSpace):
			return nil, nil, fmt.Errorf("%w: %w", ErrNoSpace, err)
		case !mirror.GoneOrChanged(err):
			return nil, nil, err
		}
	}
}
