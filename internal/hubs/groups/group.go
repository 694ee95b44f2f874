package groups

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
	"github.com/eventyard/eventyard/processor"
)

// group is one group of one hub, whose records a call reads and writes.
type group struct {
	broker.GroupRecords
	k *Registry
}

// Kinds of records: what follows a group's prefix in their keys.
const (
	leasePrefix      = "lease/"
	checkpointPrefix = "checkpoint/"
	entryPrefix      = "fact/"
)

// find finds a group.
func (k *Registry) find(ctx context.Context, g processor.Group) (group, error) {
	if err := context.Cause(ctx); err != nil {
		return group{}, err
	}
	r, err := k.broker.GroupRecords(ctx, g.Hub, g.Group)
	return group{r, k}, err
}

// list reads the records of a kind whose key goes on with prefix. show makes of each what the
// caller wants, by what follows the kind in its key.
func list[R versioned, T any](ctx context.Context, g group, what, kind, prefix string, show func(R, string, meta.Revision) T) ([]T, error) {
	kind = g.Prefix + kind
	entries, err := g.k.meta.List(ctx, kind+prefix)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	all := make([]T, len(entries))
	for i, e := range entries {
		record, err := decode[R](e)
		if err != nil {
			return nil, err
		}
		all[i] = show(record, strings.TrimPrefix(e.Key, kind), e.Revision)
	}
	return all, nil
}

// has wants the partition to be one of the hub's, so that a group has no more leases and
// checkpoints than the hub has partitions.
func (g group) has(partition string) error {
	if n, ok := partitionNumber(partition); ok && n < g.Hub.Partitions {
		return nil
	}
	return &broker.NotFoundError{Kind: broker.KindPartition, Hub: g.Hub.Name, Name: partition, Partitions: g.Hub.Partitions}
}

// gone is the error for a group that was deleted under a call.
func (g group) gone() error {
	return &broker.NotFoundError{Kind: broker.KindGroup, Hub: g.Hub.Name, Name: g.Group.Name}
}

// created is a record that did not exist before.
type created struct {
	key      string
	revision meta.Revision
}

// settle takes records back that were created while their group was deleted: the deletion
// may have listed the records before, and would not know of them.
func (g group) settle(ctx context.Context, records ...created) error {
	if len(records) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // who leaves now leaves the record
	if !g.k.broker.GroupGone(ctx, g.GroupRecords) {
		return nil
	}
	for _, c := range records {
		err := g.k.meta.Delete(ctx, c.key, c.revision)
		if err != nil && !mirror.GoneOrChanged(err) {
			g.k.log.Warn("a record of a deleted group stays behind", "key", c.key, "error", err)
		}
	}
	return g.gone()
}

// now has the precision that clients are shown.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
