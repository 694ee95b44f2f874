package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// Released is what an operator took a partition from.
type Released struct {
	Partition string
	// Lease is the one that was there; without a version if there was none.
	Lease processor.Lease
	// Disconnected is how many receivers with an epoch were.
	Disconnected int
}

// Release takes a partition from its owner, for an operator: the lease is removed, epochs begin at 1
// again, also those of functions' work, and receivers with an epoch are disconnected. The
// checkpoint's position stays, and so does what functions have recorded of events.
// Who had the partition learns it with its next renewal, or write, and may take it again like
// anybody else. A *broker.NotFoundError where there is no such partition.
func (k *Registry) Release(ctx context.Context, hub, name, partition string) (Released, error) {
	done := Released{Partition: partition}
	g, err := k.find(ctx, processor.Group{Hub: hub, Group: name})
	if err != nil {
		return done, err
	}
	if err := g.has(partition); err != nil {
		return done, err
	}
	// The lease first: who has none cannot raise the fence again.
	if err := mirror.Uncontested(ctx, func() (err error) { done.Lease, err = g.dropLease(ctx, partition); return err }); err != nil {
		return done, fmt.Errorf("release partition %s: %w", partition, err)
	}
	if err := mirror.Uncontested(ctx, func() error { return g.dropFence(ctx, partition) }); err != nil {
		return done, fmt.Errorf("release partition %s: %w", partition, err)
	}
	if err := mirror.Uncontested(ctx, func() error { return g.dropWorkEpochs(ctx, partition) }); err != nil {
		return done, fmt.Errorf("release partition %s: %w", partition, err)
	}
	done.Disconnected, err = k.broker.Disconnect(ctx, g.Hub.Name, g.Group.Name, partition)
	k.notes.Note(ctx, activity.Entry{Kind: activity.PartitionReleased, Object: objectOf(g, "partitions", partition), Detail: ownedBy(done.Lease.Owner)})
	noteOwner(ctx, g, partition, done.Lease.Owner, "")
	return done, err
}

// dropLease removes a lease; meta.ErrConflict if it is another meanwhile.
func (g group) dropLease(ctx context.Context, partition string) (processor.Lease, error) {
	had, err := g.lease(ctx, partition)
	if err != nil || had.revision == 0 {
		return processor.Lease{Partition: partition}, err
	}
	err = g.k.meta.Delete(ctx, g.Prefix+leasePrefix+partition, had.revision)
	if errors.Is(err, meta.ErrNotFound) {
		err = nil
	}
	return had.lease(partition, had.revision), err
}

// dropFence takes a checkpoint's fence away. The position is nobody's then, as after an operator's
// move.
func (g group) dropFence(ctx context.Context, partition string) error {
	record, revision, err := g.checkpoint(ctx, partition)
	if err != nil || revision == 0 {
		return err
	}
	record.Fence, record.Epoch = 0, 0
	_, err = g.write(ctx, partition, revision, record)
	return err
}

// dropWorkEpochs lets every function that works on a partition begin with any epoch. That the last
// owner is cut off is no death of its program.
func (g group) dropWorkEpochs(ctx context.Context, partition string) error {
	of := processor.Group{Hub: g.Hub.Name, Group: g.Group.Name}
	entries, err := g.k.Entries(ctx, of, workPrefix)
	if err != nil {
		return err
	}
	for _, e := range entries {
		work, err := triage.DecodeWork(e.Value)
		if !strings.HasSuffix(e.Key, "/"+partition) || err != nil { // what cannot be read is begun again anyway
			continue
		}
		work.Epoch, work.Clean = 0, true
		if e.Value, err = triage.EncodeWork(work); err != nil {
			return err
		}
		if _, err := g.k.Put(ctx, of, e); errors.Is(err, processor.ErrConflict) {
			return meta.ErrConflict
		} else if err != nil {
			return err
		}
	}
	return nil
}
