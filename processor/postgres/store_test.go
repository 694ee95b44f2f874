package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/storetest"
	"github.com/eventyard/eventyard/test/parts"
)

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url+"&pool_max_conns=3")
	testkit.Must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestStore runs the suite, all on one database, and each peer on connections of its own. // P1,
// P3, P7, P8
func TestStore(t *testing.T) {
	url := parts.Postgres(t)
	storetest.RunWith(t, func(t *testing.T) processor.Store { return New(connect(t, url), Config{}) }, storetest.Options{
		Peer: func(t *testing.T, s processor.Store) processor.Store { return New(connect(t, url), Config{}) },
	})
}
