package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/test/parts"
)

// firstOutcome runs a processor until its handler has returned once, and gives what it returned.
func firstOutcome(t *testing.T, cfg processor.Config, handle processor.Handler) error {
	t.Helper()
	yard := servertest.Start(t)
	yard.Hub(t, "orders", 1)
	orders := yard.Dial(t).Hub("orders")
	testkit.Must(t, orders.Send(t.Context(), event.Text("a")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg.Log = testkit.Quiet()
	outcome := errors.New("no call within a minute")
	err := processor.New(orders, cfg).Run(ctx, func(call context.Context, b *processor.Batch) error {
		if ctx.Err() != nil {
			return nil
		}
		outcome = handle(call, b)
		cancel()
		return outcome
	})
	testkit.Check(t, err)
	return outcome
}

// TestATransactionOfAnotherStoreSaysSo: the checkpoint cannot be moved where the processor does not
// keep it. // P7
func TestATransactionOfAnotherStoreSaysSo(t *testing.T) {
	url, elsewhere := parts.Postgres(t), parts.Postgres(t)
	ours := New(connect(t, url), Config{})
	run := func(context.Context, pgx.Tx, *processor.Batch) error { t.Error("the function was called"); return nil }
	for name, other := range map[string]processor.Store{
		"the yard's": nil, "in memory": memory.New(), "wrapped": wrapped{memory.New()},
		"another schema":   New(connect(t, url), Config{Schema: "elsewhere"}),
		"another database": New(connect(t, elsewhere), Config{}),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.ErrorIs(t, firstOutcome(t, processor.Config{Store: other}, ours.InTx(run)), errOtherStore, "the call gave")
		})
	}
}

// embedded and wrapped are stores as users wrap them.
type (
	embedded struct{ *Store }
	wrapped  struct{ processor.Store }
)

func (w wrapped) Unwrap() processor.Store { return w.Store }

// TestAStoreThatIsWrappedOrMadeTwiceIsTheSame: what counts is where the records are. // P7
func TestAStoreThatIsWrappedOrMadeTwiceIsTheSame(t *testing.T) {
	for name, same := range map[string]func(s *Store) processor.Store{
		"embedded":   func(s *Store) processor.Store { return embedded{s} },
		"wrapped":    func(s *Store) processor.Store { return wrapped{s} },
		"made twice": func(s *Store) processor.Store { return New(s.pool, Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ours := New(connect(t, parts.Postgres(t)), Config{})
			run := func(context.Context, pgx.Tx, *processor.Batch) error { return nil }
			testkit.Check(t, firstOutcome(t, processor.Config{Store: same(ours)}, ours.InTx(run)))
		})
	}
}

// TestACheckpointInATransactionIsAnErrorAtOnce: it would wait for the transaction, and that for the
// function. // P7
func TestACheckpointInATransactionIsAnErrorAtOnce(t *testing.T) {
	ours := New(connect(t, parts.Postgres(t)), Config{})
	err := firstOutcome(t, processor.Config{Store: ours}, ours.InTx(func(ctx context.Context, _ pgx.Tx, b *processor.Batch) error {
		if err := b.Checkpoint(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("it gave %v", err)
		}
		return nil
	}))
	testkit.Check(t, err)
}
