package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Checkpoints reads all checkpoints of a group. A partition that was begun and never saved is
// among them, without a position.
func (k *Registry) Checkpoints(ctx context.Context, of processor.Group) ([]processor.Checkpoint, error) {
	g, err := k.find(ctx, of)
	if err != nil {
		return nil, err
	}
	return g.checkpoints(ctx)
}

// Positions tells how far a group is, by partition, as its table does: by the yard's own checkpoints and, where there
// is none, by those that processors of other libraries have saved in the yard's blobs.
func (k *Registry) Positions(ctx context.Context, of processor.Group) (map[string]processor.Checkpoint, error) {
	g, err := k.find(ctx, of)
	if err != nil {
		return nil, err
	}
	foreign, err := foreignOf(ctx, g)
	if err != nil {
		return nil, err
	}
	own, err := g.checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	positions := make(map[string]processor.Checkpoint, len(foreign)+len(own))
	for partition, f := range foreign {
		positions[partition] = f.Checkpoint
	}
	for _, c := range own {
		if hasPosition(c) {
			positions[c.Partition] = c
		}
	}
	return positions, nil
}

func (g group) checkpoints(ctx context.Context) ([]processor.Checkpoint, error) {
	return list(ctx, g, "checkpoints", checkpointPrefix, "", checkpointRecord.checkpoint)
}

// Begin raises the fence to the lease's epoch and gives the checkpoint.
func (k *Registry) Begin(ctx context.Context, of processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	return k.BeginBy(ctx, k.itself, of, l)
}

// BeginBy is Begin for a client, whose lease it has to be.
func (k *Registry) BeginBy(ctx context.Context, by Caller, of processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	g, err := k.find(ctx, of)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if err := g.has(l.Partition); err != nil {
		return processor.Checkpoint{}, err
	}
	for {
		if err := g.holds(ctx, by, l); err != nil {
			return processor.Checkpoint{}, err
		}
		record, revision, err := g.checkpoint(ctx, l.Partition)
		if err != nil {
			return processor.Checkpoint{}, err
		}
		if record.Fence > l.Epoch {
			return processor.Checkpoint{}, processor.ErrFenced
		}
		record.Fence = l.Epoch
		// Who was faster is either a former owner's last save or the next owner: the lease
		// says which, so this ends.
		c, err := g.write(ctx, l.Partition, revision, record)
		if !errors.Is(err, meta.ErrConflict) {
			return c, err
		}
		if err := context.Cause(ctx); err != nil {
			return processor.Checkpoint{}, err
		}
	}
}

// checkpoint reads one; revision zero if there is none.
func (g group) checkpoint(ctx context.Context, partition string) (checkpointRecord, meta.Revision, error) {
	entry, err := g.k.meta.Get(ctx, g.Prefix+checkpointPrefix+partition)
	if errors.Is(err, meta.ErrNotFound) {
		return checkpointRecord{V: recordVersion, Sequence: -1}, 0, nil
	}
	if err != nil {
		return checkpointRecord{}, 0, fmt.Errorf("read checkpoint of partition %s: %w", partition, err)
	}
	record, err := decode[checkpointRecord](entry)
	return record, entry.Revision, err
}

// write stores a checkpoint's record; meta.ErrConflict if the revision is another.
func (g group) write(ctx context.Context, partition string, expected meta.Revision, record checkpointRecord) (processor.Checkpoint, error) {
	key := g.Prefix + checkpointPrefix + partition
	revision, err := g.k.meta.CompareAndSet(ctx, key, expected, encode(record))
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("write checkpoint of partition %s: %w", partition, err)
	}
	if expected == 0 {
		if err := g.settle(ctx, created{key, revision}); err != nil {
			return processor.Checkpoint{}, err
		}
	}
	return record.checkpoint(partition, revision), nil
}

// Save stores a checkpoint under a lease.
func (k *Registry) Save(ctx context.Context, of processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	return k.SaveBy(ctx, k.itself, of, l, c)
}

// SaveBy is Save for a client, whose lease it has to be.
func (k *Registry) SaveBy(ctx context.Context, by Caller, of processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	c.Partition = l.Partition
	g, err := k.findFor(ctx, of, c)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if err := g.holds(ctx, by, l); err != nil {
		return processor.Checkpoint{}, err
	}
	expected, fence, ok := fencedRevisionOf(c.Version)
	if !ok {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	if !by.Operator { // what stands in the version it may have made up
		if fence, err = g.fence(ctx, l.Partition, expected, fence); err != nil {
			return processor.Checkpoint{}, err
		}
	}
	if fence > l.Epoch {
		return processor.Checkpoint{}, processor.ErrFenced
	}
	c.Epoch = l.Epoch
	saved, err := g.write(ctx, c.Partition, expected, recordOf(c, l.Epoch))
	if !errors.Is(err, meta.ErrConflict) {
		return saved, err
	}
	// Why it lost the comparison: ErrFenced if the partition is another's.
	record, _, err := g.checkpoint(ctx, l.Partition)
	switch {
	case err != nil:
		return processor.Checkpoint{}, err
	case record.Fence > l.Epoch:
		return processor.Checkpoint{}, processor.ErrFenced
	}
	if err := g.holds(ctx, by, l); err != nil {
		return processor.Checkpoint{}, err
	}
	return processor.Checkpoint{}, processor.ErrConflict
}

// fence gives that of a checkpoint in the revision given. Of one that is not there any more it is
// whatever was said: the comparison fails.
func (g group) fence(ctx context.Context, partition string, expected meta.Revision, said int64) (int64, error) {
	record, revision, err := g.checkpoint(ctx, partition)
	switch {
	case err != nil:
		return 0, err
	case revision == expected:
		return record.Fence, nil
	case revision == 0:
		return 0, processor.ErrConflict
	case revision < expected:
		return 0, fmt.Errorf("checkpoint of partition %s: %w", partition, ErrBehind)
	}
	return said, nil
}

// Force stores a checkpoint for an operator. The fence stays as it is.
func (k *Registry) Force(ctx context.Context, of processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	g, err := k.findFor(ctx, of, c)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	return g.force(ctx, c)
}

func (g group) force(ctx context.Context, c processor.Checkpoint) (processor.Checkpoint, error) {
	expected, fence, ok := fencedRevisionOf(c.Version)
	if !ok {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	c.Epoch = 0
	forced, err := g.write(ctx, c.Partition, expected, recordOf(c, fence))
	if errors.Is(err, meta.ErrConflict) {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	return forced, err
}

// findFor also looks at what is to be written.
func (k *Registry) findFor(ctx context.Context, of processor.Group, c processor.Checkpoint) (group, error) {
	g, err := k.find(ctx, of)
	if err != nil {
		return group{}, err
	}
	if c.Sequence < -1 {
		return group{}, fmt.Errorf("checkpoint of partition %s: %w: sequence number %d", c.Partition, ErrInvalid, c.Sequence)
	}
	return g, errors.Join(g.has(c.Partition), checkText("offset", c.Offset, maxOffsetBytes), checkText("hub id", c.HubID, maxHubIDBytes))
}

func recordOf(c processor.Checkpoint, fence int64) checkpointRecord {
	return checkpointRecord{
		V: recordVersion, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch, HubID: c.HubID,
		Saved: now(), Fence: fence,
	}
}
