package broker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

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
