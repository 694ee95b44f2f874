// Package redis is a processor.Store in Redis (6 or later, or one that speaks like it): a
// single server, one with replicas behind Sentinel, or a Cluster.
//
//	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addresses})
//	store := yardredis.New(client, yardredis.Config{})
//
// Each write is one Lua script that checks its own conditions, so that nothing comes between.
// All keys of a group have one hash tag and lie in one slot of a Cluster. The client's own
// repeats are kept from writes: a write whose answer was lost is an error.
//
// # Durability
//
// Redis may lose what it has acknowledged: at a crash what was not yet written to disk, at a
// fail-over what the new primary had not yet received. Lost checkpoints make events come again,
// never vanish. A lost lease may give a partition two owners until one of them notices; the hub's
// epochs still let only one of them read. To keep nearly all of it: appendonly yes, appendfsync
// always (everysec may lose a second), min-replicas-to-write 1 and a small min-replicas-max-lag,
// and no eviction (maxmemory-policy noeviction). Where nothing may be lost, use the yard's own
// store or PostgreSQL.
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/processor"
)

// Config is how the records are kept. The zero Config works.
type Config struct {
	// Prefix begins every key and channel; empty means "eventyard".
	Prefix string
}

// Store is a processor.Store in Redis. The client stays the caller's.
type Store struct {
	client redis.UniversalClient
	prefix string
}

var (
	_ processor.Store   = (*Store)(nil)
	_ processor.Watcher = (*Store)(nil)
)

// New makes a store; nothing is asked of Redis before it is used.
func New(client redis.UniversalClient, cfg Config) *Store {
	return &Store{client: client, prefix: cmp.Or(cfg.Prefix, "eventyard")}
}

// key is that of one kind of records of a group. What is in braces decides the slot;
// escaped, names have none of their own.
func (s *Store) key(g processor.Group, kind string) string {
	g = g.Canonical()
	return fmt.Sprintf("%s:{%s/%s/%s}:%s", s.prefix,
		url.PathEscape(g.Namespace), url.PathEscape(g.Hub), url.PathEscape(g.Group), kind)
}

func (s *Store) leases(g processor.Group) string      { return s.key(g, "leases") }
func (s *Store) checkpoints(g processor.Group) string { return s.key(g, "checkpoints") }
func (s *Store) entries(g processor.Group) string     { return s.key(g, "facts") }
func (s *Store) channel(g processor.Group) string     { return s.key(g, "changed") }

// newVersion is random, so that none comes back, not even when Redis has lost something.
func newVersion() string { return rand.Text() }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// clock reads a time as the scripts write it.
func clock(text string) (time.Time, error) {
	micros, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMicro(micros).UTC(), err
}

// write runs a script that answers with a verdict and perhaps a record.
func (s *Store) write(ctx context.Context, run script, keys []string, args ...any) (record string, err error) {
	answer, err := run.on(ctx, s.client, keys, args...)
	if err != nil {
		return "", err
	}
	if len(answer) == 0 {
		return "", errors.New("the script gave no verdict")
	}
	switch answer[0] {
	case "ok":
		return answer[len(answer)-1], nil
	case "conflict":
		return "", processor.ErrConflict
	case "fenced":
		return "", processor.ErrFenced
	}
	return "", fmt.Errorf("the script's verdict is %q", answer[0])
}

// all reads a hash.
func (s *Store) all(ctx context.Context, key string) (map[string]string, error) {
	answer, err := allScript.on(ctx, s.client, []string{key})
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for i := 0; i+1 < len(answer); i += 2 {
		fields[answer[i]] = answer[i+1]
	}
	return fields, nil
}
