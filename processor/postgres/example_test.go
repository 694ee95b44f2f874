package postgres_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/postgres"
)

// Each event is counted exactly once: the count and the checkpoint are committed together.
func ExampleStore_InTx() {
	count := func(ctx context.Context, orders *hub.Hub, pool *pgxpool.Pool) error {
		store := postgres.New(pool, postgres.Config{})
		p := processor.New(orders, processor.Config{Group: "billing", Store: store})
		return p.Run(ctx, store.InTx(func(ctx context.Context, tx pgx.Tx, b *processor.Batch) error {
			_, err := tx.Exec(ctx, "update orders_seen set n = n + $1", len(b.Events))
			return err
		}))
	}
	_ = count
}
