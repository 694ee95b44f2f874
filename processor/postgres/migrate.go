package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// migrations make the tables, one version after another. What was released is not
// changed: a change is a further one.
//
// Versions are random, so that none comes back, not even after a removal, or when the database was
// restored from a backup. A checkpoint whose sequence is null was never saved: its row
// is only a fence.
var migrations = []string{`
create table {leases} (
	namespace text not null, hub text not null, consumer_group text not null, partition text not null,
	owner text not null, epoch bigint not null,
	acquired timestamptz not null, renewed timestamptz not null, version text not null,
	primary key (namespace, hub, consumer_group, partition)
) with (fillfactor = 50);
create table {checkpoints} (
	namespace text not null, hub text not null, consumer_group text not null, partition text not null,
	sequence bigint, "offset" text not null, epoch bigint not null, hub_id text not null,
	updated timestamptz not null, version text not null, fence bigint not null,
	primary key (namespace, hub, consumer_group, partition)
) with (fillfactor = 50);
create table {facts} (
	namespace text not null, hub text not null, consumer_group text not null, key text collate "C" not null,
	value bytea not null, version text not null,
	primary key (namespace, hub, consumer_group, key)
) with (fillfactor = 50);
`}

// Migrate makes the schema and the tables, or brings them to this version of the package. It
// needs the right to create; where the tables are up to date it needs none but to read,
// so a role with more rights can do it beforehand. Any number of processes may call it at once.
func (s *Store) Migrate(ctx context.Context) error {
	version, err := s.version(ctx, s.pool)
	if err != nil || version >= len(migrations) {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.migrate(ctx, tx) })
	if err != nil {
		return fmt.Errorf("make tables in schema %s: %w", s.cfg.Schema, err)
	}
	return nil
}

// migrate makes what is missing; meanwhile others wait for the lock.
func (s *Store) migrate(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", s.lockKey("migrate")); err != nil {
		return err
	}
	version, err := s.version(ctx, tx)
	if err != nil || version >= len(migrations) {
		return err
	}
	run := func(sql string, args ...any) {
		if err == nil {
			_, err = tx.Exec(ctx, s.sql.Replace(sql), args...)
		}
	}
	if version < 0 {
		// A schema that is there is left alone: to create it, even if it exists, takes a right of
		// its own.
		var exists bool
		err = tx.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", s.cfg.Schema).Scan(&exists)
		if !exists {
			run("create schema {schema}")
		}
		run("create table {migrations} (version int primary key)")
		version = 0
	}
	for i, migration := range migrations[version:] {
		run(migration)
		run("insert into {migrations} (version) values ($1)", version+i+1)
	}
	return err
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// tableExists reads the catalog itself: what to_regclass knows may be older than the advisory lock.
const tableExists = `select exists (select from pg_class c join pg_namespace n on n.oid = relnamespace
	where nspname = $1 and relname = $2)`

// version is that of the tables, -1 if there are none.
func (s *Store) version(ctx context.Context, q querier) (int, error) {
	var exists bool
	err := q.QueryRow(ctx, tableExists, s.cfg.Schema, s.cfg.Prefix+"migrations").Scan(&exists)
	if err != nil || !exists {
		return -1, err
	}
	var version int
	err = q.QueryRow(ctx, s.sql.Replace("select coalesce(max(version), 0) from {migrations}")).Scan(&version)
	return version, err
}

// ready makes the tables on first use.
func (s *Store) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.migrated {
		return nil
	}
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	s.migrated = true
	return nil
}
