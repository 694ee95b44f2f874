package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
)

const checkpointColumns = `partition, coalesce(sequence, -1), "offset", epoch, hub_id, updated, version`

func scanCheckpoint(row pgx.CollectableRow) (processor.Checkpoint, error) {
	var c processor.Checkpoint
	err := row.Scan(&c.Partition, &c.Sequence, &c.Offset, &c.Epoch, &c.HubID, &c.Updated, &c.Version)
	c.Updated = c.Updated.UTC()
	return c, err
}

// Checkpoints reads all checkpoints of a group; a fence alone is none.
func (s *Store) Checkpoints(ctx context.Context, g processor.Group) ([]processor.Checkpoint, error) {
	all, err := query(ctx, s, g, scanCheckpoint,
		"select "+checkpointColumns+" from {checkpoints} where {group} and sequence is not null")
	if err != nil {
		return nil, fmt.Errorf("read checkpoints of %s/%s: %w", g.Hub, g.Group, err)
	}
	return all, nil
}

// held is the condition that a lease is the partition's: its partition, owner and epoch
// are the parameters 4, 5 and 6.
const held = `exists (select from {leases} where {group} and partition = $4 and owner = $5 and owner <> '' and epoch = $6)`

// saveCheckpoint changes the row in one version, or makes it where there is to be none. Fenced
// is distinguished from a conflict by whether the lease was held.
const saveCheckpoint = `
with lease as (
	select ` + held + ` as held
), changed as (
	update {checkpoints} set sequence = $7, "offset" = $8, hub_id = $9, epoch = $6,
		updated = now(), version = gen_random_uuid()::text
	from lease where held and {group} and partition = $4 and version = $10 and fence <= $6
	returning updated, version
), made as (
	insert into {checkpoints} (namespace, hub, consumer_group, partition, sequence, "offset", hub_id, epoch, updated, version, fence)
	select $1, $2, $3, $4, $7, $8, $9, $6, now(), gen_random_uuid()::text, $6 from lease where held and $10 = ''
	on conflict do nothing
	returning updated, version
)
select held, updated, version from lease
	left join (select * from changed union all select * from made) written on true`

func (s *Store) Save(ctx context.Context, g processor.Group, l processor.Lease, c processor.Checkpoint) (processor.Checkpoint, error) {
	got, _, err := queryOne(ctx, s, g, scanSaved, saveCheckpoint,
		l.Partition, l.Owner, l.Epoch, c.Sequence, c.Offset, c.HubID, string(c.Version))
	if err == nil {
		c.Partition, c.Epoch = l.Partition, l.Epoch
		c, err = got.apply(c)
	}
	if errors.Is(err, processor.ErrConflict) {
		// The statement saw the lease as it was before it waited for the row, and whoever it waited
		// for may be the next owner.
		still, _, failed := queryOne(ctx, s, g, pgx.RowTo[bool], "select "+held, l.Partition, l.Owner, l.Epoch)
		switch {
		case failed != nil:
			err = failed
		case !still:
			err = processor.ErrFenced
		}
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("save checkpoint %d of %s/%s/%s: %w", c.Sequence, g.Hub, g.Group, l.Partition, err)
	}
	return c, nil
}

// beginCheckpoint rewrites the row as it is, or makes one that is only a fence. A
// late Begin of a lower epoch finds the higher fence.
const beginCheckpoint = `
insert into {checkpoints} as c (namespace, hub, consumer_group, partition, "offset", hub_id, epoch, updated, version, fence)
select $1, $2, $3, $4, '', '', 0, now(), gen_random_uuid()::text, $6 where ` + held + `
on conflict (namespace, hub, consumer_group, partition) do update
	set version = excluded.version, fence = excluded.fence where c.fence <= excluded.fence
returning ` + checkpointColumns

// begunCheckpoint reads the row where the lease's owner has begun already.
const begunCheckpoint = "select " + checkpointColumns + " from {checkpoints} where {group} and partition = $4 and fence = $6 and " + held

// Begin gives the partition's checkpoint to its new owner and fences the former. Where a
// transaction of the former owner's handler is in the way, it ends by itself, or is
// ended after Config.Evict. Begun again under the same lease, it only reads, and waits for no
// transaction of its own.
func (s *Store) Begin(ctx context.Context, g processor.Group, l processor.Lease) (processor.Checkpoint, error) {
	c, found, err := queryOne(ctx, s, g, scanCheckpoint, begunCheckpoint, l.Partition, l.Owner, l.Epoch)
	if err == nil && !found {
		c, found, err = s.fence(ctx, g, l)
	}
	if hasCode(err, lockNotAvailable) {
		if err = s.evict(ctx, g, l); err == nil {
			c, found, err = s.fence(ctx, g, l)
		}
	}
	if err == nil && !found {
		err = processor.ErrFenced
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("begin %s/%s/%s: %w", g.Hub, g.Group, l.Partition, err)
	}
	return c, nil
}

// forceCheckpoint changes the row in one version; one that is only a fence is as none.
const forceCheckpoint = `
insert into {checkpoints} as c (namespace, hub, consumer_group, partition, sequence, "offset", hub_id, epoch, updated, version, fence)
select $1, $2, $3, $4, $5, $6, $7, 0, now(), gen_random_uuid()::text, 0
where $8 = '' or exists (select from {checkpoints} where {group} and partition = $4)
on conflict (namespace, hub, consumer_group, partition) do update
	set sequence = excluded.sequence, "offset" = excluded."offset", hub_id = excluded.hub_id, epoch = 0,
		updated = excluded.updated, version = excluded.version
	where case when c.sequence is null then $8 in ('', c.version) else c.version = $8 end
returning true, updated, version`

func (s *Store) Force(ctx context.Context, g processor.Group, c processor.Checkpoint) (processor.Checkpoint, error) {
	got, found, err := queryOne(ctx, s, g, scanSaved, forceCheckpoint, c.Partition, c.Sequence, c.Offset, c.HubID, string(c.Version))
	if err == nil && !found {
		err = processor.ErrConflict
	}
	if err == nil {
		c.Epoch = 0
		c, err = got.apply(c)
	}
	if err != nil {
		return processor.Checkpoint{}, fmt.Errorf("move checkpoint of %s/%s/%s: %w", g.Hub, g.Group, c.Partition, err)
	}
	return c, nil
}

// saved is the outcome of a checkpoint's write.
type saved struct {
	held    bool
	updated *time.Time // nil: nothing was written
	version *string
}

func scanSaved(row pgx.CollectableRow) (saved, error) {
	var s saved
	err := row.Scan(&s.held, &s.updated, &s.version)
	return s, err
}

// apply gives the checkpoint as it was written.
func (s saved) apply(c processor.Checkpoint) (processor.Checkpoint, error) {
	switch {
	case !s.held:
		return c, processor.ErrFenced
	case s.version == nil:
		return c, processor.ErrConflict
	}
	c.Updated, c.Version = s.updated.UTC(), processor.Version(*s.version)
	return c, nil
}
