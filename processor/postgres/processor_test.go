package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/servertest"
	"github.com/eventyard/eventyard/test/parts"
)

const (
	e2ePartitions = 4
	e2eEvents     = 120 // of each partition
)

// TestInstancesThatLoseTheirConnectionsWriteEachEventOnce runs processors against a yard and a
// database whose sessions are ended all the time, one's in the middle of its own
// transaction; one instance comes later, one goes early. // P1, P3, P7, P8, F2
func TestInstancesThatLoseTheirConnectionsWriteEachEventOnce(t *testing.T) {
	yard := servertest.Start(t)
	yard.Hub(t, "orders", e2ePartitions)
	orders := yard.Dial(t).Hub("orders")
	for p := range e2ePartitions {
		var all []event.Event
		for i := range e2eEvents {
			all = append(all, event.Event{Body: fmt.Append(nil, i)})
		}
		testkit.Must(t, orders.SendTo(t.Context(), fmt.Sprint(p), all...))
	}
	w := newWorld(t, orders)
	first := w.start(t, "first")
	w.await(t, e2ePartitions*e2eEvents/4)
	second := w.start(t, "second")
	w.await(t, e2ePartitions*e2eEvents/2)
	first()
	w.await(t, e2ePartitions*e2eEvents)
	second()
	w.wantOnce(t)
}

// world is what the instances share.
type world struct {
	hub   processor.Hub
	url   string
	admin *pgxpool.Pool
	calls atomic.Int64
}

func newWorld(t *testing.T, h processor.Hub) *world {
	t.Helper()
	w := &world{hub: h, url: parts.Postgres(t)}
	w.admin = connect(t, w.url)
	testkit.Must(t, testkit.Err(w.admin.Exec(t.Context(), "create table done (partition text, sequence bigint)")))
	return w
}

// start runs an instance and gives what stops it.
func (w *world) start(t *testing.T, id string) (stop func()) {
	t.Helper()
	store := New(connect(t, w.url), Config{})
	p := processor.New(w.hub, processor.Config{
		ID: id, Store: store, MaxBatch: 10, Lease: 10 * time.Second, Renew: 200 * time.Millisecond,
		Backoff: processor.Backoff{First: 5 * time.Millisecond, Max: 50 * time.Millisecond},
		OnError: func(err error) { t.Logf("%s: %v", id, err) }, Log: testkit.Quiet(),
	})
	return testkit.Run(t, func(ctx context.Context) error { return p.Run(ctx, store.InTx(w.handle)) })
}

// handle writes down what it was given, and every third time ends all sessions before its
// own is committed.
func (w *world) handle(ctx context.Context, tx pgx.Tx, b *processor.Batch) error {
	for _, ev := range b.Events {
		if _, err := tx.Exec(ctx, "insert into done values ($1, $2)", b.Partition.ID(), ev.Sequence); err != nil {
			return err
		}
	}
	if w.calls.Add(1)%3 == 0 {
		_, err := w.admin.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid()`)
		return err
	}
	return nil
}

// await waits until so many events are written down. Another session may end ours.
func (w *world) await(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for count := 0; count < n; {
		if err := w.admin.QueryRow(ctx, "select count(*) from done").Scan(&count); ctx.Err() != nil {
			t.Fatalf("%d events after two minutes, want %d: %v", count, n, err)
		}
	}
}

func (w *world) wantOnce(t *testing.T) {
	t.Helper()
	var all, different int
	err := w.admin.QueryRow(t.Context(), "select count(*), count(distinct (partition, sequence)) from done").Scan(&all, &different)
	testkit.Must(t, err)
	if want := e2ePartitions * e2eEvents; all != want || different != want {
		t.Errorf("%d events were written, %d different ones, want %d", all, different, want)
	}
}
