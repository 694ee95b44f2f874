package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/processor"
)

func (s *Store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(r.checkpoints)), nil
}

// Begin gives the partition's checkpoint. Nothing has to be written to fence: the lease
// and the checkpoint are looked at under one lock.
func (s *Store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if !r.owns(l) {
		return processor.Checkpoint{}, processor.ErrFenced
	}
	c, exists := r.checkpoints[l.Partition]
	if !exists {
		return processor.Checkpoint{Partition: l.Partition, Sequence: -1}, nil
	}
	return c, nil
}

func (s *Store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if !r.owns(l) {
		return processor.Checkpoint{}, processor.ErrFenced
	}
	c.Partition, c.Epoch = l.Partition, l.Epoch
	return s.storeLocked(r, c)
}

func (s *Store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return processor.Checkpoint{}, err
	}
	c.Epoch = 0
	return s.storeLocked(r, c)
}

// owns reports whether the lease is the partition's, in whatever version.
func (r *records) owns(l processor.Lease) bool {
	had := r.leases[l.Partition]
	return had.Owner != "" && had.Owner == l.Owner && had.Epoch == l.Epoch
}

func (s *Store) storeLocked(r *records, c processor.Checkpoint) (processor.Checkpoint, error) {
	if r.checkpoints[c.Partition].Version != c.Version {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	c.Version, c.Updated = s.nextLocked()
	r.checkpoints[c.Partition] = c
	return c, nil
}
