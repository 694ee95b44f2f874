package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	kafka "github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: who begins to wait for the end of a transaction is not kept by storage that does not answer.
func TestBeginningToWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := func(ctx context.Context, _ eventlog.Position) (eventlog.Cursor, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		c := &committed{open: opens, held: true, fates: newFates(opens)}
		woken := false
		c.Await(func() { woken = true })()
		testkit.That(t, woken, "who reads on does not hear of it")
	})
}

// K3, R3: where what decides a transaction would lie in damage without a known end, readers hear of the damage, and are not
// woken for ever; when it has an end they go on.
func TestDamageBehindATransaction(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustPut(t, b, frame("plain"))
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	mustPut(t, b, frame("damaged"))
	damage := &eventlog.CorruptError{Where: "segment 0", Reason: "checksum", First: 2, Next: eventlog.NoSequence}
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext && op.At >= 2 {
			return damage
		}
		return nil
	})
	c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
	defer c.Close()
	testkit.Equal(t, testkit.Value(c.Next(t.Context()))(t).First, 0)
	for range 3 {
		_, err := c.Next(t.Context())
		testkit.That(t, errors.Is(err, damage), "it is told of %v", err)
		testkit.Equal(t, c.At(), 1)
	}
	_, err := b.Stable(t.Context(), "orders", "0", 0)
	testkit.Must(t, err)
	y.Engine.Inject(nil)
	endIn(t, b, 5, 0, true)
	testkit.Slices(t, rest(t, c), []string{"a", "damaged"})
}

// K3: a reader that waits for the end of a transaction goes on where events begin when retention has removed all of it
// meanwhile, together with what ended it.
func TestWhatAReaderWaitsForIsRemoved(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	whole, oldest := b.hubs.find("orders").opener(0), eventlog.Sequence(0)
	open := func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
		if number, given := at.Sequence(); !given || number < oldest {
			at = eventlog.At(oldest)
		}
		return whole(ctx, at)
	}
	putIn(t, b, inTransaction(5, 0, 0, "a", "b"))
	c := eventlog.Translated(testkit.Value(newCommitted(t.Context(), open, eventlog.Earliest(), func() *Fates { return newFates(open) }))(t), kafka.Translators())
	defer c.Close()
	testkit.Equal(t, len(rest(t, c)), 0, "while it is not decided")
	oldest = 1
	testkit.Equal(t, len(rest(t, c)), 0, "while a part of it is there")
	endIn(t, b, 5, 0, true)
	mustPut(t, b, frame("kept"))
	oldest = 3
	testkit.Slices(t, rest(t, c), []string{"kept"})
}

// K3: where looking for the end of a transaction failed, what was looked at for it says nothing of another.
func TestLookingForAnEndFails(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	open, failing := b.hubs.find("orders").opener(0), 0
	f := newFates(func(ctx context.Context, at eventlog.Position) (eventlog.Cursor, error) {
		if failing--; failing == 0 {
			return nil, eventlog.ErrUnavailable
		}
		return open(ctx, at)
	})
	f.limit = 1
	of := func(producer int64, at eventlog.Sequence) eventlog.Extent {
		return eventlog.Extent{First: at, Form: eventlog.FormTransaction, Count: 1, Producer: eventlog.Producer{ID: producer, Set: true}}
	}
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	testkit.Equal(t, testkit.Value(f.Judge(t.Context(), of(5, 0)))(t), Undecided)
	endIn(t, b, 5, 0, true)
	putIn(t, b, inTransaction(6, 0, 0, "b"))
	mustPut(t, b, frame("behind"))
	failing = 2
	testkit.ErrorIs(t, testkit.Err(f.Judge(t.Context(), of(6, 2))), eventlog.ErrUnavailable)
	testkit.Equal(t, testkit.Value(f.Judge(t.Context(), of(5, 0)))(t), Counts)
}
