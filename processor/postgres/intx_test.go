package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/test/parts"
)

var testGroup = processor.Group{Namespace: "space.example.net", Hub: "orders", Group: "billing"}

// owner is an instance that has a partition, as far as a transaction handler is concerned.
type owner struct {
	*testing.T
	store *Store
	lease processor.Lease
	saved processor.Checkpoint
}

// take claims the partition for a name, over the lease that another has, and begins.
func take(t *testing.T, s *Store, name string, over processor.Lease) *owner {
	t.Helper()
	o := &owner{T: t, store: s, lease: claim(t, s, name, over)}
	o.begin()
	return o
}

func claim(t *testing.T, s *Store, name string, over processor.Lease) processor.Lease {
	t.Helper()
	over.Partition, over.Owner, over.Epoch = "0", name, over.Epoch+1
	won, err := s.Claim(t.Context(), testGroup, []processor.Lease{over})
	if err != nil || len(won) != 1 {
		t.Fatalf("claim gave %v, %v", won, err)
	}
	return won[0]
}

func (o *owner) begin() {
	o.Helper()
	c, err := o.store.Begin(o.Context(), testGroup, o.lease)
	if err != nil {
		o.Fatal(err)
	}
	o.saved = c
}

// handle calls the transaction handler for the events from first to last.
func (o *owner) handle(first, last int64, work func(tx pgx.Tx) error) error {
	mark := processor.Mark{Group: testGroup, Lease: o.lease, Checkpoint: processor.Checkpoint{
		Partition: "0", Sequence: last, Offset: fmt.Sprint(last), Version: o.saved.Version,
	}, Stored: o.saved.Sequence}
	stored, err := inTx{o.store, mark, first}.run(o.Context(), work)
	if err == nil {
		o.saved = stored
	}
	return err
}

// add is what a user's handler does: a sum that would show every event done twice or not at all.
func add(ctx context.Context, first, last int64) func(tx pgx.Tx) error {
	return func(tx pgx.Tx) error {
		for i := first; i <= last; i++ {
			if _, err := tx.Exec(ctx, "update totals set sum = sum + $1, events = events + 1", i); err != nil {
				return err
			}
		}
		return nil
	}
}

// totals makes the user's own table.
func totals(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Must(t, testkit.Err(pool.Exec(t.Context(), "create table totals (sum bigint, events bigint); insert into totals values (0, 0)")))
}

// withTotals is a store beside the user's own table, and an owner of the partition.
func withTotals(t *testing.T, cfg Config) (*Store, *owner) {
	t.Helper()
	s := New(connect(t, parts.Postgres(t)), cfg)
	totals(t, s.pool)
	return s, take(t, s, "a", processor.Lease{})
}

// wantEvents wants the events 0 to n-1 to be in the totals once each, and the checkpoint with them.
func wantEvents(t *testing.T, s *Store, n int64) {
	t.Helper()
	var sum, events int64
	testkit.Must(t, s.pool.QueryRow(t.Context(), "select sum, events from totals").Scan(&sum, &events))
	if sum != n*(n-1)/2 || events != n {
		t.Errorf("%d events make %d, want the sum of 0 to %d", events, sum, n-1)
	}
	all, err := s.Checkpoints(t.Context(), testGroup)
	testkit.Must(t, err)
	if n > 0 && (len(all) != 1 || all[0].Sequence != n-1) {
		t.Errorf("the checkpoints are %+v, want one at %d", all, n-1)
	}
}

// TestASumIsExactWhereverAConnectionBreaks breaks the connection at every single thing that
// the database is told, before it hears of it and after it has done it, and repeats
// what failed, as a processor does. // P3, P7, F2
func TestASumIsExactWhereverAConnectionBreaks(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	pool := connect(t, url)
	totals(t, pool)
	steady := New(pool, Config{})
	testkit.Must(t, steady.Migrate(ctx))
	for _, answered := range []bool{false, true} {
		for at := 1; ; at++ {
			testkit.Must(t, testkit.Err(pool.Exec(ctx, "update totals set sum = 0, events = 0; truncate eventyard.leases, eventyard.checkpoints")))
			f := &fault{at: at, answered: answered}
			o := take(t, steady, "a", processor.Lease{})
			o.store = New(f.connect(t, url), Config{})
			for first := int64(0); first < 6; first += 3 {
				o.handleUntilDone(first, first+2)
			}
			wantEvents(t, steady, 6)
			if t.Failed() {
				t.Fatalf("broken at write %d, answered: %v", at, answered)
			}
			if f.writes < at { // it was never hit: that was all
				t.Logf("%d places, answered: %v", at-1, answered)
				break
			}
		}
	}
}

// handleUntilDone repeats a batch until it succeeds. A conflict has another cause than a
// broken connection and must not come.
func (o *owner) handleUntilDone(first, last int64) {
	o.Helper()
	for range 5 {
		err := o.handle(first, last, add(o.Context(), first, last))
		if err == nil {
			return
		}
		if errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
			o.Fatal(err)
		}
	}
	o.Fatal("it never succeeded")
}

func TestAnErrorOrAPanicOfTheFunctionRollsBack(t *testing.T) {
	s, o := withTotals(t, Config{})
	ill := errors.New("ill")
	err := o.handle(0, 4, func(tx pgx.Tx) error {
		return errors.Join(add(t.Context(), 0, 4)(tx), ill)
	})
	testkit.ErrorIs(t, err, ill, "the error")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		o.handle(0, 4, func(tx pgx.Tx) error { add(t.Context(), 0, 4)(tx); panic("ill") })
	}()
	wantEvents(t, s, 0)
	o.handleUntilDone(0, 4)
	wantEvents(t, s, 5)
}

func TestTheFunctionCannotEndTheTransaction(t *testing.T) {
	ctx := t.Context()
	s, o := withTotals(t, Config{})
	err := o.handle(0, 4, func(tx pgx.Tx) error {
		tx = innerTx{tx}
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("it could")
		}
		return pgx.BeginFunc(ctx, tx, add(ctx, 0, 4)) // a savepoint of its own is fine
	})
	testkit.Check(t, err)
	wantEvents(t, s, 5)
}

func TestAPartitionThatIsTakenMeanwhileCommitsNothing(t *testing.T) { // P1, P3
	s, a := withTotals(t, Config{})
	err := a.handle(0, 4, func(tx pgx.Tx) error {
		claim(t, s, "b", a.lease)
		return add(t.Context(), 0, 4)(tx)
	})
	testkit.ErrorIs(t, err, processor.ErrFenced, "the error")
	testkit.ErrorIs(t, a.handle(0, 4, add(t.Context(), 0, 4)), processor.ErrFenced, "the second time the error is")
	wantEvents(t, s, 0)
}

// TestBeginWaitsForTheFormerOwnersTransaction and goes on from what it committed. // P3
func TestBeginWaitsForTheFormerOwnersTransaction(t *testing.T) {
	ctx := t.Context()
	s, a := withTotals(t, Config{Evict: time.Minute})
	tx, err := s.pool.Begin(ctx)
	testkit.Must(t, err)
	call := inTx{s, processor.Mark{Group: testGroup, Lease: a.lease, Checkpoint: processor.Checkpoint{Sequence: 4}}, 0}
	had, err := call.lock(ctx, tx)
	testkit.Must(t, err)
	testkit.Must(t, add(ctx, 0, 4)(tx))
	testkit.Must(t, testkit.Err(call.move(ctx, tx, had.Version))) // the last look at the lease
	lease := claim(t, s, "b", a.lease)
	begun := make(chan *owner)
	go func() {
		b := &owner{T: t, store: s, lease: lease}
		b.saved, err = s.Begin(ctx, testGroup, lease)
		begun <- b
	}()
	awaitBlocked(t, s)
	testkit.Must(t, tx.Commit(ctx))
	b := <-begun
	if err != nil || b.saved.Sequence != 4 {
		t.Fatalf("begin gave %+v, %v", b.saved, err)
	}
	b.handleUntilDone(5, 9)
	wantEvents(t, s, 10)
}

// TestAFormerOwnerThatHangsInATransactionIsEvicted, as when its machine is paused: nobody else
// would end it. // P3
func TestAFormerOwnerThatHangsInATransactionIsEvicted(t *testing.T) {
	url := parts.Postgres(t)
	s := New(connect(t, url), Config{Evict: time.Second})
	totals(t, s.pool)
	a := take(t, New(connect(t, url), Config{}), "a", processor.Lease{})
	var b *owner
	err := a.handle(0, 4, func(tx pgx.Tx) error {
		testkit.Check(t, add(t.Context(), 0, 4)(tx))
		b = take(t, s, "b", a.lease)
		return nil
	})
	if err == nil {
		t.Error("the former owner's transaction was committed")
	}
	b.handleUntilDone(0, 4)
	wantEvents(t, s, 5)
}

// TestAnEarlierCallWhoseConnectionIsLostIsEvicted: the server may believe for hours that the
// other end is alive, and keep its locks. // P3
func TestAnEarlierCallWhoseConnectionIsLostIsEvicted(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	s := New(connect(t, url), Config{Evict: time.Second})
	totals(t, s.pool)
	o := take(t, s, "a", processor.Lease{})
	lost, err := connect(t, url).Begin(ctx)
	testkit.Must(t, err)
	call := inTx{s, processor.Mark{Group: testGroup, Lease: o.lease}, 0}
	testkit.Must(t, testkit.Err(call.lock(ctx, lost)))
	testkit.Check(t, o.handle(0, 4, add(ctx, 0, 4)))
	if lost.Commit(ctx) == nil {
		t.Error("the earlier transaction was committed, too")
	}
	wantEvents(t, s, 5)
}

// TestBeginningAgainDoesNotWaitForOnesOwnTransaction, which may take long. // P7
func TestBeginningAgainDoesNotWaitForOnesOwnTransaction(t *testing.T) {
	s, o := withTotals(t, Config{Evict: time.Hour})
	err := o.handle(0, 4, func(tx pgx.Tx) error {
		if _, err := s.Begin(t.Context(), testGroup, o.lease); err != nil {
			return err
		}
		return add(t.Context(), 0, 4)(tx)
	})
	testkit.Check(t, err)
	wantEvents(t, s, 5)
}

func TestAnOperatorsMoveIsAConflictForATransaction(t *testing.T) { // P7
	ctx := t.Context()
	s, o := withTotals(t, Config{})
	o.handleUntilDone(0, 4)
	moved := o.saved
	moved.Sequence, moved.Offset = 1, "1"
	testkit.Must(t, testkit.Err(s.Force(ctx, testGroup, moved)))
	testkit.ErrorIs(t, o.handle(5, 9, add(ctx, 5, 9)), processor.ErrConflict, "the error")
	o.begin()
	testkit.Equal(t, o.saved.Sequence, 1, "begin gave %+v", o.saved)
	testkit.Check(t, o.handle(2, 9, func(pgx.Tx) error { return nil }))
}

// TestWhatWasCommittedIsNotDoneAgainAfterTheCheckpointWasReadAnew: the processor looks at its
// checkpoints from time to time, also between two tries of a batch. // P3, F2
func TestWhatWasCommittedIsNotDoneAgainAfterTheCheckpointWasReadAnew(t *testing.T) {
	s, o := withTotals(t, Config{})
	if err := o.handle(0, 4, add(t.Context(), 0, 4)); err != nil { // suppose that the answer was lost
		t.Fatal(err)
	}
	o.begin()
	testkit.Check(t, o.handle(0, 4, add(t.Context(), 0, 4)))
	wantEvents(t, s, 5)
	testkit.ErrorIs(t, o.handle(3, 9, add(t.Context(), 3, 9)), processor.ErrConflict, "a batch of which a part is done")
	o.handleUntilDone(5, 9)
	wantEvents(t, s, 10)
}

// TestATransactionWithoutEventsIsFenced like others, though it moves no checkpoint. // P3
func TestATransactionWithoutEventsIsFenced(t *testing.T) {
	s, a := withTotals(t, Config{})
	idle := func(o *owner) error {
		mark := processor.Mark{Group: testGroup, Lease: o.lease, Checkpoint: o.saved}
		_, err := inTx{s, mark, noEvents}.run(t.Context(), add(t.Context(), 0, 0))
		return err
	}
	testkit.Must(t, idle(a))
	b := take(t, s, "b", a.lease)
	testkit.ErrorIs(t, idle(a), processor.ErrFenced, "the former owner is told")
	testkit.Must(t, idle(b))
	var events int
	if err := s.pool.QueryRow(t.Context(), "select events from totals").Scan(&events); err != nil || events != 2 {
		t.Errorf("%d transactions were committed, want 2: %v", events, err)
	}
	if all, err := s.Checkpoints(t.Context(), testGroup); err != nil || len(all) != 0 {
		t.Errorf("checkpoints are %+v, %v", all, err)
	}
}
