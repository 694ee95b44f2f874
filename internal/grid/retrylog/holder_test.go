package retrylog

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// mailers is the shard of those that things are for.
var mailers = shards.Of("mailer2345678")

// holder opens the logs of a shard as its holder under an epoch, at a node of its own.
func (y *yard) holder(epoch shards.Epoch) *Logs {
	y.t.Helper()
	cfg := y.cfg
	cfg.Held = &shards.Held{Shard: mailers, Epoch: epoch}
	return testkit.Value(Open(context.Background(), cfg))(y.t)
}

// stored gives the value of the shard's book of parked logs, or of retry logs.
func (y *yard) stored(under string) content {
	y.t.Helper()
	e := testkit.Value(y.meta.Get(context.Background(), under+shards.Held{Shard: mailers}.Name()))(y.t)
	return testkit.Value(bookCodec.Read(e))(y.t).Value
}

// C2: once a later holder has begun, what the one before has done moves no cursor, and it stops.
func TestAHolderBeforeMovesNoCursor(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx := context.Background()
		before := y.holder(3)
		testkit.Must(t, before.Put(ctx, time.Second, things(2)))
		testkit.Must(t, before.Parked("mailer2345678").Put(ctx, things(5)))
		parked := testkit.Value(before.Parked("mailer2345678").TryTake(ctx, 5, 1<<20))(t)
		doneAll(parked[:2])
		testkit.Must(t, before.Save(ctx))
		testkit.Equal(t, y.stored(parkedUnder).Cursors["mailer2345678"].Next, 2)

		now := y.holder(7)
		testkit.Equal(t, y.stored(parkedUnder).Epoch, 7, "epoch of the parked logs' book")
		testkit.Equal(t, y.stored(retryLogsUnder).Epoch, 7, "epoch of the retry logs' book")
		doneAll(parked)
		testkit.ErrorIs(t, before.Save(ctx), shards.ErrLost, "the holder before saves")
		testkit.ErrorIs(t, before.Save(ctx), shards.ErrLost, "and tries again")
		testkit.Equal(t, y.stored(parkedUnder).Cursors["mailer2345678"].Next, 2, "the cursor under an old epoch")
		left := testkit.Value(now.Parked("mailer2345678").TryTake(ctx, 5, 1<<20))(t)
		testkit.Equal(t, len(left), 3, "entries that the new holder is given")
		doneAll(left)
		testkit.Must(t, now.Save(ctx))
		testkit.Equal(t, y.stored(parkedUnder).Cursors["mailer2345678"].Next, 5)
		_, err := Open(ctx, before.cfg)
		testkit.ErrorIs(t, err, shards.ErrLost, "it opens the shard once more under its old epoch")
	})
}

// C2: logs that run end by themselves when a later holder has begun.
func TestRunEndsWhenTheShardIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.Logs = y.holder(1)
		ended := make(chan error, 1)
		go func() { ended <- y.Logs.Run(t.Context(), y.taker.take) }()
		y.put(time.Second, things(1)...)
		handed := y.wantAfter(time.Second, "0")
		now := y.holder(2)
		done(handed)
		testkit.ErrorIs(t, <-ended, shards.ErrLost, "Run of the holder before")
		testkit.Equal(t, y.stored(retryLogsUnder).Cursors[retryLogName(1)].Next, 0, "the cursor under an old epoch")

		y.Logs, y.taker = now, &taker{}
		y.run()
		done(y.wantHanded("0")) // again, and not lost
		time.Sleep(2 * saveEvery)
		y.stop()
		testkit.Equal(t, y.stored(retryLogsUnder).Cursors[retryLogName(1)].Next, 1)
	})
}

// C2: what a later holder has removed does not come back, and what it has added is not lost.
func TestAHolderBeforeUndoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx := context.Background()
		before := y.holder(1)
		testkit.Must(t, before.Parked("mailer2345678").Put(ctx, things(1)))
		now := y.holder(2)
		testkit.Must(t, now.Forget(ctx, "mailer2345678"))
		testkit.Must(t, now.Put(ctx, time.Minute, things(1)))
		testkit.ErrorIs(t, before.Put(ctx, time.Second, things(1)), shards.ErrLost, "the first put into a retry log")
		testkit.ErrorIs(t, before.Parked("mailer2345678").book.set(ctx, "mailer2345678", cursor{}), shards.ErrLost, "a cursor of what is gone")
		testkit.Equal(t, len(y.stored(parkedUnder).Cursors), 0, "parked logs in the book")
		testkit.Equal(t, len(y.stored(retryLogsUnder).Cursors), 1, "retry logs in the book")
	})
}

// C2: an answer that is lost is no rival.
func TestAHolderMeetsItsOwnWrites(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		ctx := context.Background()
		held := y.holder(4)
		testkit.Must(t, held.Parked("mailer2345678").Put(ctx, things(3)))
		doneAll(testkit.Value(held.Parked("mailer2345678").TryTake(ctx, 2, 1<<20))(t))
		y.meta.InjectOnce(metatest.Op.Changes, func(metatest.Op) error { return metatest.Unheard(meta.ErrUncertain) })
		testkit.ErrorIs(t, held.Save(ctx), meta.ErrUncertain, "the answer")
		doneAll(testkit.Value(held.Parked("mailer2345678").TryTake(ctx, 1, 1<<20))(t))
		testkit.Must(t, held.Save(ctx))
		testkit.Equal(t, y.stored(parkedUnder).Cursors["mailer2345678"].Next, 3)
	})
}

// Each shard has retry logs of its own; a yard on one machine has the names it always had, and
// stores no epoch.
func TestNamesOfWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, Config{})
		y.put(time.Second, things(1)...)
		testkit.Must(t, y.Parked("mailer2345678").Put(t.Context(), things(1)))
		if value := testkit.Value(y.meta.Get(t.Context(), retryLogsKey))(t).Value; strings.Contains(string(value), "epoch") {
			t.Errorf("one machine stores %s", value)
		}
		held := y.holder(1)
		testkit.Equal(t, held.logs[0].id, eventlog.PartitionID{Log: "grid-tiers-" + held.cfg.Held.Name()})
		testkit.Equal(t, y.Logs.logs[0].id, eventlog.PartitionID{Log: "grid-tiers"})
		testkit.Equal(t, y.stored(parkedUnder).Cursors["mailer2345678"].Next, 0, "the book without epoch is read as that of epoch 0")
		testkit.ErrorIs(t, y.Parked("mailer2345678").book.set(t.Context(), "other", cursor{}), shards.ErrLost, "one machine writes where nodes have begun")
	})
}
