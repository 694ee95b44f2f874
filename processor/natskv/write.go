package natskv

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/processor"
)

// write stores a key on condition of its version (empty: it does not exist) and gives the
// new one. ErrConflict.
func (s *store) write(ctx context.Context, key string, value []byte, version processor.Version) (processor.Version, error) {
	if version != "" {
		revision, err := revisionOf(version)
		if err != nil {
			return "", err
		}
		return s.update(ctx, key, value, revision)
	}
	version, err := s.update(ctx, key, value, 0)
	if !errors.Is(err, processor.ErrConflict) {
		return version, err
	}
	found, err := s.read(ctx, key) // the mark of its removal may be there
	if err != nil {
		return "", err
	}
	if !found[key].removed {
		return "", processor.ErrConflict
	}
	return s.update(ctx, key, value, found[key].revision)
}

func (s *store) update(ctx context.Context, key string, value []byte, revision uint64) (processor.Version, error) {
	var written uint64
	err := s.whenFree(ctx, key, revision, func(ctx context.Context) (err error) {
		written, err = s.kv.Update(ctx, key, value, revision)
		return err
	})
	return entry{revision: written}.version(), err
}

// whenFree makes a write, and makes it again while the key is busy. A cluster's leader refuses a
// write while one to the same key is in process, with the answer for a wrong revision; but that one
// may fail, or be the very one that it has just acknowledged. So the key is looked at: if it is in
// the expected revision there is no conflict yet. ErrConflict.
func (s *store) whenFree(ctx context.Context, key string, revision uint64, write func(ctx context.Context) error) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := write(ctx)
		reported, is := errors.AsType[*jetstream.APIError](err)
		if !is || reported.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
			if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
				return processor.ErrConflict
			}
			return err
		}
		found, err := s.read(ctx, key)
		if err != nil {
			return err
		}
		if found[key].revision != revision {
			return processor.ErrConflict
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// remove leaves a mark instead of a key. ErrConflict.
func (s *store) remove(ctx context.Context, key string, version processor.Version) error {
	revision, err := revisionOf(version)
	if err != nil {
		return err
	}
	options := []jetstream.KVDeleteOpt{jetstream.LastRevision(revision)}
	if s.expire {
		options = append(options, jetstream.PurgeTTL(markers))
	}
	return s.whenFree(ctx, key, revision, func(ctx context.Context) error { return s.kv.Purge(ctx, key, options...) })
}

// revisionOf gives the revision that a version is. What is none is nobody's, and not in any
// version.
func revisionOf(version processor.Version) (uint64, error) {
	revision, err := strconv.ParseUint(string(version), 10, 64)
	if err != nil || revision == 0 {
		return 0, processor.ErrConflict
	}
	return revision, nil
}
