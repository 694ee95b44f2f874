package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Checkpoints reads all checkpoints of a group. A partition that was begun and never saved is
// among them, without a position.
func (k *Registry) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	at, err := k.find(ctx, g)
	if err != nil {
		return nil, err
	}
	return k.checkpoints(ctx, at)
}

func (k *Registry) checkpoints(ctx context.Context, at location) ([]processor.Checkpoint, error) {
	entries, err := k.meta.List(ctx, at.checkpoints())
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	all := make([]processor.Checkpoint, len(entries))
	for i, e := range entries {
		record, err := decode[checkpointRecord](e)
		if err != nil {
			return nil, err
		}
		all[i] = record.checkpoint(strings.TrimPrefix(e.Key, at.checkpoints()), e.Revision)
	}
	return all, nil
}

// Begin raises the fence to the lease's epoch and gives the checkpoint.
func (k *Registry) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	at, err := k.find(ctx, g)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if err := at.has(l.Partition); err != nil {
		return processor.Checkpoint{}, err
	}
	for {
		// Who was faster is either a former owner's last save or the next owner: the lease
		// tells, so this ends.
		c, err := k.begin(ctx, at, l)
		if !errors.Is(err, meta.ErrConflict) {
			return c, err
		}
		if err := context.Cause(ctx); err != nil {
			return processor.Checkpoint{}, err
		}
	}
}

func (k *Registry) begin(ctx context.Context, at location, l processor.Lease) (processor.Checkpoint, error) {
	if err := k.holds(ctx, at, l); err != nil {
		return processor.Checkpoint{}, err
	}
	record, revision, err := k.checkpoint(ctx, at, l.Partition)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if record.Fence > l.Epoch {
		return processor.Checkpoint{}, processor.ErrFenced
	}
	record.Fence = l.Epoch
	return k.write(ctx, at, l.Partition, revision, record)
}

// checkpoint reads one; revision zero if there is none.
func (k *Registry) checkpoint(ctx context.Context, at location, partition string) (checkpointRecord, meta.Revision, error) {
	entry, err := k.meta.Get(ctx, at.checkpoint(partition))
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
func (k *Registry) write(ctx context.Context, at location, partition string, expected meta.Revision, record checkpointRecord) (processor.Checkpoint, error) {
	key := at.checkpoint(partition)
	revision, err := k.meta.CompareAndSet(ctx, key, expected, encode(record))
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("write checkpoint of partition %s: %w", partition, err)
	}
	if expected == 0 {
		if err := k.settle(ctx, at, created{key, revision}); err != nil {
			return processor.Checkpoint{}, err
		}
	}
	return record.checkpoint(partition, revision), nil
}

// Save stores a checkpoint under a lease.
func (k *Registry) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	c.Partition = l.Partition
	at, err := k.findFor(ctx, g, c)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	if err := k.holds(ctx, at, l); err != nil {
		return processor.Checkpoint{}, err
	}
	expected, fence, ok := fencedRevisionOf(c.Version)
	switch {
	case !ok:
		return processor.Checkpoint{}, processor.ErrConflict
	case fence > l.Epoch:
		return processor.Checkpoint{}, processor.ErrFenced
	}
	c.Epoch = l.Epoch
	saved, err := k.write(ctx, at, c.Partition, expected, recordOf(c, l.Epoch))
	if errors.Is(err, meta.ErrConflict) {
		return processor.Checkpoint{}, k.lost(ctx, at, l)
	}
	return saved, err
}

// lost tells why a save lost its comparison: ErrFenced if the partition is another's.
func (k *Registry) lost(ctx context.Context, at location, l processor.Lease) error {
	record, _, err := k.checkpoint(ctx, at, l.Partition)
	switch {
	case err != nil:
		return err
	case record.Fence > l.Epoch:
		return processor.ErrFenced
	}
	if err := k.holds(ctx, at, l); err != nil {
		return err
	}
	return processor.ErrConflict
}

// Force stores a checkpoint for an operator. The fence stays as it is.
func (k *Registry) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	at, err := k.findFor(ctx, g, c)
	if err != nil {
		return processor.Checkpoint{}, err
	}
	return k.force(ctx, at, c)
}

func (k *Registry) force(ctx context.Context, at location, c processor.Checkpoint) (processor.Checkpoint, error) {
	expected, fence, ok := fencedRevisionOf(c.Version)
	if !ok {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	c.Epoch = 0
	forced, err := k.write(ctx, at, c.Partition, expected, recordOf(c, fence))
	if errors.Is(err, meta.ErrConflict) {
		return processor.Checkpoint{}, processor.ErrConflict
	}
	return forced, err
}

// findFor also looks at what is to be written.
func (k *Registry) findFor(ctx context.Context, g processor.Group, c processor.Checkpoint) (location, error) {
	at, err := k.find(ctx, g)
	if err != nil {
		return location{}, err
	}
	if c.Sequence < -1 {
		return location{}, fmt.Errorf("checkpoint of partition %s: %w: sequence number %d", c.Partition, ErrInvalid, c.Sequence)
	}
	return at, errors.Join(at.has(c.Partition), checkText("offset", c.Offset, maxOffsetBytes), checkText("hub id", c.HubID, maxHubIDBytes))
}

func recordOf(c processor.Checkpoint, fence int64) checkpointRecord {
	return checkpointRecord{
		V: recordVersion, Sequence: c.Sequence, Offset: c.Offset, Epoch: c.Epoch, HubID: c.HubID,
		Saved: now(), Fence: fence,
	}
}
