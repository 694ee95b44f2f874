package natskv

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// write stores a key on condition of its version (empty: it does not exist) and gives the
// new one. ErrConflict.
func (s *store) write(ctx context.Context, key string, value []byte, version processor.Version) (processor.Version, error) {
	if version == "" {
		return s.create(ctx, key, value)
	}
	revision, err := revisionOf(version)
	if err != nil {
		return "", err
	}
	return s.update(ctx, key, value, revision)
}

// create creates a key, also where the mark of its removal is.
func (s *store) create(ctx context.Context, key string, value []byte) (processor.Version, error) {
	version, err := s.update(ctx, key, value, 0)
	if !errors.Is(err, processor.ErrConflict) {
		return version, err
	}
	found, err := s.read(ctx, key)
	if err != nil {
		return "", err
	}
	if !found[key].removed {
		return "", processor.ErrConflict
	}
	return s.update(ctx, key, value, found[key].revision)
}

func (s *store) update(ctx context.Context, key string, value []byte, revision uint64) (processor.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	written, err := s.kv.Update(ctx, key, value, revision)
	if err != nil {
		return "", conflict(err)
	}
	return entry{revision: written}.version(), nil
}

// remove leaves a mark in the place of a key. ErrConflict.
func (s *store) remove(ctx context.Context, key string, version processor.Version) error {
	revision, err := revisionOf(version)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	options := []jetstream.KVDeleteOpt{jetstream.LastRevision(revision)}
	if s.expire {
		options = append(options, jetstream.PurgeTTL(markers))
	}
	return conflict(s.kv.Purge(ctx, key, options...))
}

func conflict(err error) error {
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return processor.ErrConflict
	}
	return err
}

// revisionOf gives the revision that a version is. What is none is nobody's, and not in any version.
func revisionOf(version processor.Version) (uint64, error) {
	revision, err := strconv.ParseUint(string(version), 10, 64)
	if err != nil || revision == 0 {
		return 0, processor.ErrConflict
	}
	return revision, nil
}
