package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
)

const leaseColumns = "partition, owner, epoch, acquired, renewed, version"

func scanLease(row pgx.CollectableRow) (processor.Lease, error) {
	var l processor.Lease
	err := row.Scan(&l.Partition, &l.Owner, &l.Epoch, &l.Acquired, &l.Renewed, &l.Version)
	l.Acquired, l.Renewed = l.Acquired.UTC(), l.Renewed.UTC()
	return l, err
}

func (s *Store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	leases, err := query(ctx, s, g, scanLease, "select "+leaseColumns+" from {leases} where {group}")
	if err != nil {
		return nil, fmt.Errorf("read leases of %s/%s: %w", g.Hub, g.Group, err)
	}
	return leases, nil
}

// claimLeases writes any number of leases at once. Rows are locked in the order of their
// partitions, whoever claims, so that no two claims wait for each other. A lease that another took
// while this one waited is looked at again by the update itself, and left out. Who watches is
// notified if any lease has another owner or epoch than before.
const claimLeases = `
with wanted as (
	select * from unnest($4::text[], $5::text[], $6::bigint[], $7::text[])
		with ordinality as w (partition, owner, epoch, version, n)
), locked as (
	select partition, owner, epoch from {leases} where {group} and partition in (select partition from wanted)
	order by partition for update
), changed as (
	update {leases} l set owner = w.owner, epoch = w.epoch, version = gen_random_uuid()::text,
		acquired = case when w.epoch = l.epoch then l.acquired else greatest(now(), l.acquired) end,
		renewed = greatest(now(), l.acquired)
	from wanted w join locked using (partition)
	where {group} and l.partition = w.partition and l.version = w.version and w.epoch >= l.epoch
		and (w.owner in ('', l.owner) or w.epoch > l.epoch)
	returning l.partition, l.owner, l.epoch, l.acquired, l.renewed, l.version
), made as (
	insert into {leases} (namespace, hub, consumer_group, partition, owner, epoch, acquired, renewed, version)
	select $1, $2, $3, partition, owner, epoch, now(), now(), gen_random_uuid()::text
	from wanted where version = '' order by partition
	on conflict do nothing
	returning partition, owner, epoch, acquired, renewed, version
), written as (
	select * from changed union all select * from made
), told as (
	select pg_notify($8, '') where exists (
		select from written w left join locked had using (partition) where (w.owner, w.epoch) is distinct from (had.owner, had.epoch)
	)
)
select ` + leaseColumns + ` from written
	left join told on true join (select partition, min(n) as n from wanted group by partition) w using (partition)
order by n`

// Claim writes leases, all in one statement.
func (s *Store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if len(leases) == 0 {
		return nil, context.Cause(ctx)
	}
	n := len(leases)
	partitions, owners, epochs, versions := make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	for i, l := range leases {
		partitions[i], owners[i], epochs[i], versions[i] = l.Partition, l.Owner, l.Epoch, string(l.Version)
	}
	won, err := query(ctx, s, g, scanLease, claimLeases, partitions, owners, epochs, versions, s.channel(g))
	if err != nil {
		return nil, fmt.Errorf("claim %d leases of %s/%s: %w", n, g.Hub, g.Group, err)
	}
	return won, nil
}
