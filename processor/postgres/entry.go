package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/processor"
)

func scanEntry(row pgx.CollectableRow) (processor.Entry, error) {
	var f processor.Entry
	err := row.Scan(&f.Key, &f.Value, &f.Version)
	return f, err
}

func (s *Store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	if err := groupentry.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	entries, err := query(ctx, s, g, scanEntry,
		"select key, value, version from {facts} where {group} and starts_with(key, $4)", prefix)
	if err != nil {
		return nil, fmt.Errorf("read entries %s of %s/%s: %w", prefix, g.Hub, g.Group, err)
	}
	return entries, nil
}

// putEntry notifies who watches, unless the value is the same as before, and also where the entry
// is not yet seen in the version that is replaced.
const putEntry = `
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

func (s *Store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	if err := groupentry.Check(f.Key, f.Value); err != nil {
		return processor.Entry{}, err
	}
	value := f.Value
	if value == nil {
		value = []byte{} // nil would be null
	}
	version, err := s.writeEntry(ctx, g, putEntry, f.Key, value, string(f.Version), s.channel(g))
	if err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	f.Version = version
	return f, nil
}

const removeEntry = `
with gone as (
	delete from {facts} where {group} and key = $4 and version = $5 returning version
)
select version from gone, pg_notify($6, '')`

func (s *Store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	if f.Version == "" {
		return errors.New("remove an entry: it has no version")
	}
	_, err := s.writeEntry(ctx, g, removeEntry, f.Key, string(f.Version), s.channel(g))
	if err != nil {
		return fmt.Errorf("remove entry %s of %s/%s: %w", f.Key, g.Hub, g.Group, err)
	}
	return nil
}

// writeEntry runs a statement that gives the version it wrote, or nothing.
func (s *Store) writeEntry(ctx context.Context, g processor.Group, sql string, args ...any) (processor.Version, error) {
	version, found, err := queryOne(ctx, s, g, pgx.RowTo[string], sql, args...)
	if err == nil && !found {
		err = processor.ErrConflict
	}
	return processor.Version(version), err
}
