package blob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// Config is what the store works with.
type Config struct {
	// Meta keeps the entries; required.
	Meta meta.Store
	// FS is the folder of the larger bodies, which holds nothing else; required.
	FS vfs.FS
	// SweepEvery is how often files without a name are looked for; zero means every hour.
	SweepEvery time.Duration
	// Log hears what was swept; nil means slog.Default().
	Log *slog.Logger
}

// Service is a blob store. All methods may be called by many goroutines at once.
type Service struct {
	meta  meta.Store
	files *files
	every time.Duration
	log   *slog.Logger
}

// Open makes the folder. It starts no goroutine; Run does the rest.
func Open(cfg Config) (*Service, error) {
	if cfg.Meta == nil || cfg.FS == nil {
		return nil, errors.New("open blobs: both a meta store and a folder are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = time.Hour
	}
	files, err := openFiles(cfg.FS)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	return &Service{meta: cfg.Meta, files: files, every: cfg.SweepEvery, log: cfg.Log}, nil
}

// set stores an entry, or deletes it where there is none to store. It waits for the outcome
// also where its caller has gone: a change that is under way cannot be taken back, and until
// it is made or not nobody can tell whether its file has a name.
func (s *Service) set(ctx context.Context, key string, expected meta.Revision, stored any) error {
	err := ctx.Err()
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if stored == nil {
		if expected == 0 {
			return nil
		}
		err = s.meta.Delete(ctx, key, expected)
	} else {
		_, err = s.meta.CompareAndSet(ctx, key, expected, encode(stored))
	}
	if errors.Is(err, meta.ErrNoSpace) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// unchanged tells whether an error of set says that nothing was changed.
func unchanged(err error) bool {
	return errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound) || errors.Is(err, meta.ErrInvalid) || errors.Is(err, meta.ErrNoSpace)
}

// lost tells whether somebody else was faster.
func lost(err error) bool {
	return errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrNotFound)
}

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

// change reads an entry and lets it be changed, again if somebody else was faster: each time
// that happens somebody has got on. What decide returns as nil is deleted.
func change[T any](ctx context.Context, s *Service, key string, decide func(old *T) (*T, error)) (old, changed *T, err error) {
	for {
		old, revision, err := get[T](ctx, s, key)
		if err != nil {
			return nil, nil, err
		}
		changed, err := decide(old)
		if err != nil {
			return nil, nil, err
		}
		var stored any
		if changed != nil {
			stored = changed
		}
		err = s.set(ctx, key, revision, stored)
		if err == nil {
			return old, changed, nil
		}
		if !lost(err) {
			return nil, nil, err
		}
	}
}
