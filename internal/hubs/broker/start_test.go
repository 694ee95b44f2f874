package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K1: events that were deleted by number are gone for every reader at once, also after a start, however much of them the
// engine still keeps; others stay, and numbers go on.
func TestEventsAreDeletedByNumber(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2)
	for i := range 10 {
		mustPublish(t, b, "orders", Target{Partition: "0"}, fmt.Sprint("a", i))
		mustPublish(t, b, "orders", Target{Partition: "1"}, fmt.Sprint("b", i))
	}
	before := func(at eventlog.Sequence) eventlog.Sequence {
		t.Helper()
		return testkit.Value(b.DeleteBefore(t.Context(), "Orders", map[int]eventlog.Sequence{0: at}))(t)[0]
	}
	testkit.Equal(t, before(0), eventlog.Sequence(0))
	testkit.Equal(t, before(4), eventlog.Sequence(4))
	testkit.Equal(t, before(2), eventlog.Sequence(4), "one that is gone already")
	check := func(what string) {
		t.Helper()
		for _, at := range []eventlog.Position{eventlog.Earliest(), eventlog.At(0), eventlog.At(3), eventlog.At(4)} {
			testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, at), []string{"a4", "a5", "a6", "a7", "a8", "a9"}, "%s, from %v", what, at)
		}
		testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, eventlog.At(8)), []string{"a8", "a9"}, what)
		testkit.Equal(t, len(read(t, b, "orders", DefaultGroup, 1, eventlog.Earliest())), 10, "%s: events of the other partition", what)
		raw := testkit.Value(b.RawCursor(t.Context(), "orders", "0", eventlog.Earliest()))(t)
		testkit.Equal(t, raw.At(), eventlog.Sequence(4), what)
		testkit.Must(t, raw.Close())
		info := testkit.Value(b.Partition(t.Context(), "orders", "0"))(t)
		testkit.Equal(t, info.First, eventlog.Sequence(4), what)
		testkit.Equal(t, info.Last, eventlog.Sequence(9), what)
		testkit.Equal(t, testkit.Value(b.Partitions(t.Context(), "orders"))(t)[1].First, eventlog.Sequence(0), what)
	}
	check("at first")
	b = y.open(t)
	check("after a start")
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{QuotaEvents: new(int64(5))})))
	check("after a change of the hub")
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", HubChange{QuotaEvents: new(int64(0))})))

	testkit.Equal(t, before(EndOfPartition), eventlog.Sequence(10), "all")
	info := testkit.Value(b.Partition(t.Context(), "orders", "0"))(t)
	testkit.That(t, info.Empty && info.First == 10 && info.Last == 9, "an empty partition is %+v", info)
	mustPublish(t, b, "orders", Target{Partition: "0"}, "more")
	testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, eventlog.Earliest()), []string{"more"})

	for _, at := range []eventlog.Sequence{12, -2} {
		_, err := b.DeleteBefore(t.Context(), "orders", map[int]eventlog.Sequence{0: at})
		_, beyond := errors.AsType[*eventlog.PositionError](err)
		testkit.That(t, beyond, "%d is refused with %v", at, err)
	}
	wantNotFound(t, testkit.Err(b.DeleteBefore(t.Context(), "orders", map[int]eventlog.Sequence{2: 0})), KindPartition)
	wantNotFound(t, testkit.Err(b.DeleteBefore(t.Context(), "nobody", map[int]eventlog.Sequence{0: 0})), KindHub)
	testkit.Must(t, b.DeleteHub(t.Context(), "orders"))
	mustCreate(t, b, "orders", 2)
	mustPublish(t, b, "orders", Target{Partition: "0"}, "new")
	testkit.Slices(t, read(t, b, "orders", DefaultGroup, 0, eventlog.Earliest()), []string{"new"}, "of a new hub of that name")
}

// K1, R2: a log that has lost its end with the power, behind which its partition begins since events were deleted, can be
// read, and gives what is stored from then on.
func TestAPartitionDoesNotBeginBeyondItsEnd(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 2)
	mustPublish(t, b, "orders", Target{Partition: "0"}, "kept by the log")
	_, err := b.definitions.Change(t.Context(), hubKey("orders"), func(d *definition) error {
		d.Starts = map[int]eventlog.Sequence{0: 5, 1: 0}
		return nil
	})
	testkit.Must(t, err)
	testkit.Equal(t, len(readZero(t, b)), 0, "events before a start, which is not to fail")
	b = y.open(t)
	for _, at := range []eventlog.Position{eventlog.Earliest(), eventlog.At(0), eventlog.At(1), eventlog.Latest()} {
		c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", at))(t)
		testkit.Equal(t, c.At(), 1, "where a reader begins, from %v", at)
		testkit.Must(t, c.Close())
	}
	testkit.Equal(t, mustPublish(t, b, "orders", Target{Partition: "0"}, "new").First, 1)
	for _, b := range []*Broker{b, y.open(t)} {
		testkit.Slices(t, readZero(t, b), []string{"new"})
		testkit.Equal(t, infoOf(t, b).First, 1)
	}
}

// C5, K1: storage that does not answer holds up a start once, however many partitions it has, and what could not be looked at
// then is looked at when it answers.
func TestAStartDoesNotWaitForEachPartition(t *testing.T) {
	const partitions = 200
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", partitions)
		starts := make(map[int]eventlog.Sequence)
		for number := range partitions {
			starts[number] = 5
		}
		_, err := b.definitions.Change(t.Context(), hubKey("orders"), func(d *definition) error {
			d.Starts = starts
			return nil
		})
		testkit.Must(t, err)
		y.Engine.Inject(func(op logtest.Op) error {
			if op.Kind == logtest.OpSealed {
				time.Sleep(20 * time.Second)
				return eventlog.ErrUnavailable
			}
			return nil
		})
		began := time.Now()
		b = y.open(t)
		testkit.That(t, time.Since(began) <= 4*20*time.Second, "a start took %v", time.Since(began))
		testkit.Equal(t, len(b.unsealed), partitions)
		y.Engine.Inject(nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		time.Sleep(startsRest)
		synctest.Wait()
		for number, at := range b.hubs.find("orders").starts {
			testkit.Equal(t, at, 0, "where partition %d begins", number)
		}
		stop()
		testkit.Must(t, <-ended)
	})
}
