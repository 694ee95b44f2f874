package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// snapshotOf reads what is written down of a partition's producers.
func (y yard) snapshotOf(t *testing.T, b *Broker, hub string) snapshot {
	t.Helper()
	entry := testkit.Value(y.Memory.Get(t.Context(), producerKey(b.hubs.find(hub).log, 0)))(t)
	s := testkit.Value(decodeSnapshot(entry.Value))(t)
	return s
}

// H2: the log is never read from its beginning: not for the first producer of a hub, and
// after a restart only from the last snapshot on.
func TestLittleIsRead(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	for n := range 20 {
		mustPublish(t, b, "orders", Target{}, fmt.Sprint(n))
	}
	p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
	testkit.Equal(t, y.Engine.Count(logtest.OpCursor), 0, "cursors for the first producer")
	mustStore(t, p, 0, "a", "b")
	var read []eventlog.Sequence
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext {
			read = append(read, op.At)
		}
		return nil
	})
	b = y.open(t)
	if last := mustBegin(t, b, "orders", ProducerConfig{ID: new(p.ID()), Epoch: new(int16(0))}).Last(); last != 1 {
		t.Errorf("last is %d", last)
	}
	testkit.Slices(t, read, []eventlog.Sequence{20}, "read at")
}

// H2: while a broker runs, snapshots follow what producers do, and the end of the log from
// not too far, also for producers of an earlier life that nobody asked for; and at the end
// everything is written down.
func TestRunKeepsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{Last: atZero})
		stop := testkit.Run(t, b.Run)
		synctest.Wait()
		mustStore(t, p, 0, "a", "b")
		mustPublish(t, b, "orders", Target{}, "c")
		time.Sleep(saveInterval + time.Second)
		synctest.Wait()
		s := y.snapshotOf(t, b, "orders")
		if r := s.producers[p.ID()]; s.upTo != 3 || r.last != 1 || r.run != 2 || r.recent != sizes(2) {
			t.Errorf("got %+v", s)
		}
		mustStore(t, p, 2, "d")
		stop()
		s = y.snapshotOf(t, b, "orders")
		if r := s.producers[p.ID()]; s.upTo != 4 || r.last != 2 {
			t.Errorf("after the end: %+v", s)
		}

		later := y.open(t)
		stop = testkit.Run(t, later.Run)
		mustPublish(t, later, "orders", Target{}, "e", "f")
		time.Sleep(saveInterval + time.Second)
		synctest.Wait()
		if s := y.snapshotOf(t, later, "orders"); s.upTo != 4 {
			t.Errorf("two small events made a snapshot: %+v", s)
		}
		for range 4 {
			mustPublish(t, later, "orders", Target{}, strings.Repeat("x", saveSlackBytes/4))
		}
		time.Sleep(saveInterval + time.Second)
		synctest.Wait()
		if s := y.snapshotOf(t, later, "orders"); s.upTo != 10 {
			t.Errorf("in the next life: %+v", s)
		}
		mustPublish(t, later, "orders", Target{}, "g")
		stop()
		if s := y.snapshotOf(t, later, "orders"); s.upTo != 11 {
			t.Errorf("at its end: %+v", s)
		}
		later = y.open(t)
		stop = testkit.Run(t, later.Run)
		testkit.Must(t, later.DeleteHub(t.Context(), "orders"))
		time.Sleep(saveInterval + time.Second)
		stop()
		if entries, err := y.Memory.List(t.Context(), producersPrefix); err != nil || len(entries) != 0 {
			t.Errorf("%d entries of a deleted hub, %v", len(entries), err)
		}
	})
}

// Where producers do nothing, nothing is written: neither while others publish, nor while
// nobody does.
func TestSnapshotsAreNotWrittenForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{})
		mustStore(t, p, 1, "a")
		stop := testkit.Run(t, b.Run)
		defer stop()
		time.Sleep(saveInterval + time.Second)
		synctest.Wait()
		before := y.Meta.Count(metatest.OpSet)
		for range 100 {
			mustPublish(t, b, "orders", Target{}, "x")
			time.Sleep(saveInterval)
		}
		synctest.Wait()
		testkit.Equal(t, y.Meta.Count(metatest.OpSet), before, "writes")
		mustStore(t, p, 2, "b")
		time.Sleep(10 * saveInterval)
		synctest.Wait()
		testkit.Equal(t, y.Meta.Count(metatest.OpSet), before+1, "writes after one batch of the producer")
	})
}

// H2: a snapshot is never true for a number whose batch it does not know: what is in the
// air holds it back.
func TestSnapshotWaitsForFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		node := y.node()
		b, held := node.open(t), node.hold(2)
		mustCreate(t, b, "orders", 1)
		slow := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
		mustStore(t, slow, 0, "a")
		pending := mustSubmit(t, slow, 1, "b")
		plain := testkit.Value(y.open(t).Submit(t.Context(), "orders", Target{}, events("c")))(t)
		if _, err := plain.Wait(t.Context()); err != nil { // stores the one before it, too
			t.Fatal(err)
		}
		testkit.Must(t, slow.ledger.tend(t.Context(), 0))
		if s := y.snapshotOf(t, b, "orders"); s.upTo != 1 || s.producers[1].last != 0 {
			t.Errorf("while it is in the air: %+v", s)
		}
		if last := mustBegin(t, y.open(t), "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))}).Last(); last != 1 {
			t.Errorf("after a crash last is %d", last)
		}
		close(held)
		testkit.Must(t, testkit.Err(pending.Wait(t.Context())))
		testkit.Must(t, slow.ledger.tend(t.Context(), 0))
		if s := y.snapshotOf(t, b, "orders"); s.upTo != 3 || s.producers[1].last != 1 {
			t.Errorf("when it has landed: %+v", s)
		}
	})
}

// H2: damage in the log costs what is damaged, not the producers behind it.
func TestProducersBehindDamage(t *testing.T) {
	stored := func(t *testing.T) yard {
		y := newYard(t)
		b := y.open(t)
		mustCreate(t, b, "orders", 1)
		p := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
		for first := range int32(4) {
			mustStore(t, p, first, "x")
		}
		return y
	}
	for _, tt := range []struct {
		name   string
		damage eventlog.CorruptError
		last   int32
	}{
		{"in the middle", eventlog.CorruptError{First: 1, Next: 3}, 3},
		{"to the end", eventlog.CorruptError{First: 1, Next: eventlog.NoSequence}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := stored(t)
			y.Engine.Inject(func(op logtest.Op) error {
				if op.Kind == logtest.OpNext && op.At >= tt.damage.First && (op.At < tt.damage.Next || tt.damage.Next == eventlog.NoSequence) {
					return fmt.Errorf("read: %w", &tt.damage)
				}
				return nil
			})
			got := mustBegin(t, y.open(t), "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))})
			testkit.Equal(t, got.Last(), tt.last, "last")
		})
	}
	y := stored(t)
	y.Engine.Fail(errors.New("disk on fire"), logtest.OpNext)
	if _, err := y.open(t).Producer(t.Context(), "orders", "0", ProducerConfig{}); err == nil {
		t.Error("what cannot be read is passed over")
	}
}

// H2: a log that power loss made shorter, where syncing is left to the system, does not
// hide what is stored at its old numbers later.
func TestProducersOfAShortenedLog(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	p := mustBegin(t, b, "orders", ProducerConfig{ID: new(int64(1)), Last: atZero})
	for first := range int32(5) {
		mustStore(t, p, first, "x")
	}
	testkit.Must(t, p.ledger.tend(t.Context(), 0))
	y.Engine = storagetest.Open(t, storagetest.Config{}).Engine
	p = mustBegin(t, y.open(t), "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))})
	testkit.Equal(t, p.Last(), 4, "last")
	mustStore(t, p, 5, "y")
	if p = mustBegin(t, y.open(t), "orders", ProducerConfig{ID: new(int64(1)), Epoch: new(int16(0))}); p.Last() != 5 {
		t.Errorf("after the next start last is %d", p.Last())
	}
}

// H2: a ledger of a hub that is made while others look which hubs there are stays.
func TestLedgersOfNewHubsStay(t *testing.T) {
	b := newYard(t).open(t)
	ls := b.ledgers
	ls.mu.Lock()
	started, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		close(started)
		ls.live()
	}()
	<-started
	mustCreate(t, b, "orders", 1) // which takes longer than it does to wait for the lock
	id := eventlog.PartitionID{Log: b.hubs.find("orders").log}
	l := &ledger{accounts: accounts{byID: make(map[int64]*account)}}
	ls.all[id] = l
	ls.mu.Unlock()
	<-ended
	testkit.That(t, ls.all[id] == l, "the ledger of a new hub was dropped")
}
