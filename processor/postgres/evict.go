package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
)

const lockNotAvailable = "55P03"

// fence writes the checkpoint's fence, waiting for the row for as long as Config.Evict. What the
// database rolled back because of another's write is done again.
func (s *Store) fence(ctx context.Context, g processor.Group, l processor.Lease) (c processor.Checkpoint, found bool, err error) {
	for {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, s.lockTimeout()); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, s.sql.Replace(beginCheckpoint), append(names(g), l.Partition, l.Owner, l.Epoch)...)
			if err != nil {
				return err
			}
			all, err := pgx.CollectRows(rows, scanCheckpoint)
			if len(all) == 1 {
				c, found = all[0], true
			}
			return err
		})
		if !rolledBack(err) {
			return c, found, err
		}
	}
}

// lockTimeout bounds the transaction's waits for locks to Config.Evict.
func (s *Store) lockTimeout() string {
	return fmt.Sprintf("set local lock_timeout = %d", max(1, s.cfg.Evict.Milliseconds()))
}

// transactionLock is the advisory lock of the handler transactions on a partition, which shows
// who holds it.
func (s *Store) transactionLock(g processor.Group, partition string) int64 {
	g = g.Canonical()
	return s.lockKey("transaction", g.Namespace, g.Hub, g.Group, partition)
}

// evictSessions ends the sessions that hold the partition's transaction lock, if the
// partition is still whose lease is shown: whoever else works on it has lost it.
const evictSessions = `
select pg_terminate_backend(pid) from pg_locks
where locktype = 'advisory' and granted and pid <> pg_backend_pid()
	and database = (select oid from pg_database where datname = current_database())
	and (classid::bigint << 32) | objid::bigint = $7 and objsubid = 1
	and ` + held

// evict ends a transaction of the partition's former owner. Its owner's machine may be
// paused, and then nobody else would.
func (s *Store) evict(ctx context.Context, g processor.Group, l processor.Lease) error {
	_, err := query(ctx, s, g, pgx.RowTo[bool], evictSessions, l.Partition, l.Owner, l.Epoch, s.transactionLock(g, l.Partition))
	if err != nil {
		return fmt.Errorf("end the former owner's transaction: %w", err)
	}
	return nil
}
