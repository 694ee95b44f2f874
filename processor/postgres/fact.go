package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/internal/hubs/fact"
	"github.com/eventyard/eventyard/processor"
)

func scanFact(row pgx.CollectableRow) (processor.Fact, error) {
	var f processor.Fact
	err := row.Scan(&f.Key, &f.Value, &f.Version)
	return f, err
}

// Facts reads the facts whose key begins with prefix.
func (s *Store) Facts(ctx context.Context, g processor.Group, prefix string) ([]processor.Fact, error) {
	if err := fact.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	facts, err := query(ctx, s, g, scanFact,
		"select key, value, version from {facts} where {group} and starts_with(key, $4)", prefix)
	if err != nil {
		return nil, fmt.Errorf("read facts %s of %s/%s: %w", prefix, g.Hub, g.Group, err)
	}
	return facts, nil
}

// putFact tells who watches, unless the value is the same as before. Where the fact is not yet
// seen in the version that is replaced, it is told, too.
const putFact = `
with had as (
	select from {facts} where {group} and key = $4 and version = $6 and value = $5
), made as (
	insert into {facts} (namespace, hub, consumer_group, key, value, version)
	select $1, $2, $3, $4, $5, gen_random_uuid()::text where $6 = ''
	on conflict do nothing
	returning version
), changed as (
	update {facts} set value = $5, version = gen_random_uuid()::text
	where {group} and key = $4 and version = $6
	returning version
), written as (
	select * from made union all select * from changed
), told as (
	select pg_notify($7, '') where exists (select from written) and not exists (select from had)
)
select version from written left join told on true`

// Put stores a fact on condition of its version.
func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Fact) (processor.Fact, error) {
	if err := fact.Check(f.Key, f.Value); err != nil {
		return processor.Fact{}, err
	}
	value := f.Value
	if value == nil {
		value = []byte{} // nil would be null
	}
	version, err := s.writeFact(ctx, g, putFact, f.Key, value, string(f.Version), s.channel(g))
	if err != nil {
		return processor.Fact{}, fmt.Errorf("put fact %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	f.Version = version
	return f, nil
}

const removeFact = `
with gone as (
	delete from {facts} where {group} and key = $4 and version = $5 returning version
)
select version from gone, pg_notify($6, '')`

// Remove deletes a fact on condition of its version.
func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Fact) error {
	if f.Version == "" {
		return errors.New("remove a fact: it has no version")
	}
	_, err := s.writeFact(ctx, g, removeFact, f.Key, string(f.Version), s.channel(g))
	if err != nil {
		return fmt.Errorf("remove fact %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	return nil
}

// writeFact runs a statement that gives the version it wrote, or nothing.
func (s *Store) writeFact(ctx context.Context, g processor.Group, sql string, args ...any) (processor.Version, error) {
	version, found, err := queryOne(ctx, s, g, pgx.RowTo[string], sql, args...)
	if err == nil && !found {
		err = processor.ErrConflict
	}
	return processor.Version(version), err
}
