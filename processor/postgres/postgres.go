// Package postgres is a processor.Store in a PostgreSQL database (13 or later), and a handler
// whose own writes and checkpoint are committed in one transaction: effectively once.
//
//	store := postgres.New(pool, postgres.Config{})
//	p := processor.New(orders, processor.Config{Group: "billing", Store: store})
//	err = p.Run(ctx, store.InTx(func(ctx context.Context, tx pgx.Tx, b *processor.Batch) error {
//		return bill(ctx, tx, b.Events) // committed together with the checkpoint, or not at all
//	}))
//
// # Fences
//
// Every write is one statement that checks its own conditions. Begin rewrites the
// checkpoint's row with a new version and the epoch as its fence. Rows are locked by whoever
// writes them, so a former owner's save is either before Begin, which then reads it,
// or after, and finds another version. Times are the database's and are never compared.
//
// # Durability
//
// A write is as durable as the database's commits: with synchronous_commit off, or a fail-over to a
// replica that is not synchronous, the newest checkpoints may be lost, and events past the older
// ones come again. InTx then still holds, as the handler's own writes are lost with them.
package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/processor"
)

// Config is where and how the records are kept. The zero Config works.
type Config struct {
	// Schema has the tables; empty means "eventyard". It is made with them.
	Schema string
	// Prefix begins the tables' names, for a schema that is shared; empty means none.
	Prefix string

	// Connect opens the connection that Watch listens on, for pools that lead to a pooler
	// which cannot LISTEN, such as PgBouncer by transactions. nil takes one out of the pool.
	Connect func(ctx context.Context) (*pgx.Conn, error)

	// Tx is how InTx begins its transactions; zero means the database's default.
	Tx pgx.TxOptions
	// Evict is how long Begin and InTx wait for another transaction on the partition before they
	// end its session: its owner's machine may hang, or its connection be lost without the
	// server's knowing. 0 means 3 s. Ending it needs the same database role, or pg_signal_backend.
	Evict time.Duration
}

// Store is a processor.Store in PostgreSQL. The pool stays the caller's.
type Store struct {
	pool *pgxpool.Pool
	cfg  Config
	sql  *strings.Replacer // puts the tables' names into statements

	mu       sync.Mutex // held while tables are made
	migrated bool       // guarded by mu
}

var (
	_ processor.Store   = (*Store)(nil)
	_ processor.Watcher = (*Store)(nil)
)

// New makes a store; nothing is asked of the database before it is used. The tables are
// made on first use, unless they are there: see Migrate.
func New(pool *pgxpool.Pool, cfg Config) *Store {
	cfg.Schema, cfg.Evict = cmp.Or(cfg.Schema, "eventyard"), cmp.Or(cfg.Evict, 3*time.Second)
	table := func(name string) string { return pgx.Identifier{cfg.Schema, cfg.Prefix + name}.Sanitize() }
	return &Store{pool: pool, cfg: cfg, sql: strings.NewReplacer(
		"{schema}", pgx.Identifier{cfg.Schema}.Sanitize(),
		"{leases}", table("leases"), "{checkpoints}", table("checkpoints"),
		"{facts}", table("facts"), "{migrations}", table("migrations"),
		// Every statement on a group begins with it as its first three parameters.
		"{group}", "namespace = $1 and hub = $2 and consumer_group = $3",
	)}
}

// query runs a statement on a group and collects its rows. A statement that the database
// rolled back because of another's is known to have written nothing and is run again.
func query[T any](ctx context.Context, s *Store, g processor.Group, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	args = append(names(g), args...)
	for {
		rows, err := s.pool.Query(ctx, s.sql.Replace(sql), args...)
		if err != nil {
			return nil, err
		}
		got, err := pgx.CollectRows(rows, scan)
		if !rolledBack(err) {
			return got, err
		}
	}
}

// names are a group's, as every statement's first parameters.
func names(g processor.Group) []any {
	g = g.Canonical()
	return []any{g.Namespace, g.Hub, g.Group}
}

// queryOne is query for at most one row; false if there is none.
func queryOne[T any](ctx context.Context, s *Store, g processor.Group, scan pgx.RowToFunc[T], sql string, args ...any) (T, bool, error) {
	got, err := query(ctx, s, g, scan, sql, args...)
	if err != nil || len(got) == 0 {
		var none T
		return none, false, err
	}
	return got[0], true, nil
}

// rolledBack: a deadlock or a serialization failure.
func rolledBack(err error) bool { return hasCode(err, "40P01", "40001") }

func hasCode(err error, codes ...string) bool {
	reported, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, reported.Code)
}

// digest names something of this store where there are no schemas: channels and advisory locks.
func (s *Store) digest(what ...string) [sha256.Size]byte {
	hash := sha256.New()
	for _, part := range append([]string{s.cfg.Schema, s.cfg.Prefix}, what...) {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// lockKey is an advisory lock's.
func (s *Store) lockKey(what ...string) int64 {
	sum := s.digest(what...)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// channel is where changes of a group are reported.
func (s *Store) channel(g processor.Group) string {
	g = g.Canonical()
	sum := s.digest("watch", g.Namespace, g.Hub, g.Group)
	return "eventyard_" + hex.EncodeToString(sum[:16])
}
