package broker

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func infoOf(t testing.TB, b *Broker) PartitionInfo {
	t.Helper()
	return testkit.Value(b.Partition(t.Context(), "orders", "0"))(t)
}

// newestOf is the number of the newest event that a reader gets from the beginning.
func newestOf(t testing.TB, b *Broker) eventlog.Sequence {
	t.Helper()
	c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
	defer c.Close()
	for last := eventlog.NoSequence; ; {
		run := testkit.Value(c.TryNext(t.Context()))(t)
		if run.Len() == 0 {
			return last
		}
		last = run.Next() - 1
	}
}

// K3: the newest event of a partition is one that readers are given: not what ends a transaction, was aborted, or is not
// decided. Who waits for it would wait for ever.
func TestTheNewestEventCanBeRead(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "void"))
	endIn(t, b, 5, 0, false)
	info := infoOf(t, b)
	testkit.Equal(t, info.Last, eventlog.NoSequence, "where all was aborted")
	testkit.Equal(t, info.Empty && info.LastTime.IsZero() && info.Next == 2, true, "as it is: %+v", info)
	mustPut(t, b, frame("plain"))
	testkit.Equal(t, infoOf(t, b).Last, 2)
	at := infoOf(t, b).LastTime
	putIn(t, b, inTransaction(5, 0, 1, "a"))
	mustPut(t, b, frame("behind"))
	info = infoOf(t, b)
	testkit.Equal(t, info.Last, 2, "while a transaction goes on")
	testkit.Equal(t, info.LastOffset, "2")
	testkit.Equal(t, info.LastTime, at)
	testkit.Equal(t, info.Next, 5)
	endIn(t, b, 5, 0, true)
	info = infoOf(t, b)
	testkit.Equal(t, info.Last, 4, "behind its end")
	testkit.Equal(t, info.Next, 6)
	testkit.Equal(t, info.First, 0)
	testkit.Equal(t, testkit.Value(b.Partitions(t.Context(), "orders"))(t)[0].Last, 4)
}

// K3: what a receiver is told beside its events follows, without a look of its own.
func TestAReceiverHearsOfTheNewestEventThatCanBeRead(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.Run(ctx) }()
	defer func() { stop(); <-ended }()
	mustPut(t, b, frame("plain"))
	r := testkit.Value(b.Receive(t.Context(), ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.Earliest()}))(t)
	defer r.Close()
	defer r.Cursor.Close()
	testkit.Equal(t, r.Newest().Last, 0)
	putIn(t, b, inTransaction(5, 0, 0, "a", "b"))
	testkit.Equal(t, r.Newest().Last, 0, "while a transaction goes on")
	endIn(t, b, 5, 0, true)
	testkit.Eventually(t, "the newest event is the last of the transaction", func() bool { return r.Newest().Last == 2 })
}

// K3, R1: after a restart as well, whatever stands at the end, once somebody has met what is not decided.
func TestTheNewestEventAfterARestart(t *testing.T) {
	for name, step := range map[string]struct {
		do   func(t *testing.T, b *Broker)
		last eventlog.Sequence
	}{
		"the end of a transaction": {func(t *testing.T, b *Broker) { putIn(t, b, inTransaction(5, 0, 0, "a")); endIn(t, b, 5, 0, true) }, 40},
		"one that was aborted":     {func(t *testing.T, b *Broker) { putIn(t, b, inTransaction(5, 0, 0, "a")); endIn(t, b, 5, 0, false) }, 39},
		"one that goes on":         {func(t *testing.T, b *Broker) { putIn(t, b, inTransaction(5, 0, 0, "a")) }, 39},
		"one and a plain event":    {func(t *testing.T, b *Broker) { putIn(t, b, inTransaction(5, 0, 0, "a")); mustPut(t, b, frame("x")) }, 39},
		"one and one that is over": {func(t *testing.T, b *Broker) {
			putIn(t, b, inTransaction(5, 0, 0, "a"))
			putIn(t, b, inTransaction(6, 0, 0, "x"))
			endIn(t, b, 6, 0, true)
		}, 39},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			b := y.open(t)
			mustCreate(t, b, "orders", 1)
			for range 40 {
				mustPut(t, b, frame("plain"))
			}
			step.do(t, b)
			b = y.open(t)
			testkit.Equal(t, newestOf(t, b), step.last, "what a reader gets")
			testkit.Equal(t, infoOf(t, b).Last, step.last)
			b = y.open(t)
			b.Transacted(logOf(t, b), 0, 40) // as who coordinates transactions has it stored
			testkit.Equal(t, infoOf(t, b).Last, step.last, "without a reader")
		})
	}
}

// K3: where there are no transactions nothing is looked at but once what is at the end.
func TestPartitionsWithoutTransactionsHaveNoTail(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	mustPut(t, b, frame("plain"))
	testkit.Equal(t, infoOf(t, b).Last, 0)
	h := b.hubs.find("orders")
	testkit.Equal(t, h.tails[0].tail.Load() == nil && h.tails[0].ended.Load(), true)
}

// R3, K3: the first list of a hub after a start reads nothing of partitions that end with anything but a transaction, and of
// others tells the newest event that can be read.
func TestTheFirstListReadsWhatEndsWithATransaction(t *testing.T) {
	const partitions = 8
	dir := t.TempDir()
	store := testkit.Value(bolt.Open(bolt.Config{Path: filepath.Join(dir, "meta.db"), Log: testkit.Quiet()}))(t)
	defer func() { testkit.Check(t, store.Close()) }()
	start := func() (*Broker, *logtest.Faulty) {
		engine := testkit.Value(disk.Open(disk.Config{Dir: dir, Log: testkit.Quiet()}))(t)
		faulty := logtest.NewFaulty(engine)
		return open(t, Config{Engine: faulty, Meta: store}), faulty
	}
	b, engine := start()
	mustCreate(t, b, "orders", partitions)
	for i := range partitions - 1 { // one stays empty
		mustPublish(t, b, "orders", Target{Partition: strconv.Itoa(i)}, "event")
	}
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	endIn(t, b, 5, 0, true)
	testkit.Must(t, engine.Close())
	b, engine = start()
	defer func() { testkit.Check(t, engine.Close()) }()
	var read []eventlog.PartitionID
	var mu sync.Mutex
	engine.Inject(func(op logtest.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == logtest.OpCursor && !slices.Contains(read, op.ID) {
			read = append(read, op.ID)
		}
		return nil
	})
	all := testkit.Value(b.Partitions(t.Context(), "orders"))(t)
	for i, p := range all {
		want := []eventlog.Sequence{1, 0, 0, 0, 0, 0, 0, eventlog.NoSequence}[i]
		testkit.Equal(t, p.Last, want, "the newest event of partition %d", i)
	}
	testkit.Slices(t, read, []eventlog.PartitionID{{Log: logOf(t, b)}}, "partitions that were read")
}

// K3: who begins behind the newest event gets what a transaction commits afterwards, also what was written to it before.
func TestBehindTheNewestEventIsBeforeWhatIsNotDecided(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	mustPut(t, b, frame("plain"))
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	mustPut(t, b, frame("behind"))
	c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Latest()))(t)
	defer c.Close()
	r := testkit.Value(b.Receive(t.Context(), ReceiverConfig{Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.Latest()}))(t)
	defer r.Close()
	defer r.Cursor.Close()
	endIn(t, b, 5, 0, true)
	testkit.Slices(t, rest(t, c), []string{"a", "behind"})
	testkit.Slices(t, rest(t, r.Cursor), []string{"a", "behind"})
	over := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Latest()))(t)
	defer over.Close()
	testkit.Equal(t, len(rest(t, over)), 0, "events when all is decided")
}

// R4: a look that nobody waits for any more ends, and the next one finds what there is.
func TestALookAtATailEnds(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	tail := b.hubs.find("orders").tails[0].tail.Load()
	tail.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := b.Partition(ctx, "orders", "0")
	testkit.Equal(t, errors.Is(err, context.DeadlineExceeded), true, "got %v", err)
	<-tail.turn
	testkit.Equal(t, infoOf(t, b).Last, eventlog.NoSequence)
}

// K3, R3: a look that ends before it is through is not in vain: the next one goes on where it was.
func TestALookAtATailGoesOn(t *testing.T) {
	const frames = 40
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	mustPut(t, b, frame("plain"))
	big := strings.Repeat("x", 500<<10)
	for n := range int32(frames) {
		putIn(t, b, inTransaction(5, 0, n, big))
	}
	endIn(t, b, 5, 0, false)
	b = y.open(t)
	b.Transacted(logOf(t, b), 0, 0)
	var ctx context.Context
	var giveUp context.CancelFunc
	reads := 0
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind != logtest.OpNext {
			return nil
		}
		if reads++; reads%5 == 0 {
			giveUp()
			return context.Canceled
		}
		return nil
	})
	looks := 0
	for info := (PartitionInfo{}); ; looks++ {
		testkit.MustThat(t, looks < 4*frames, "%d looks came to nothing", looks)
		ctx, giveUp = context.WithCancel(t.Context())
		var err error
		info, err = b.Partition(ctx, "orders", "0")
		giveUp()
		if err == nil {
			testkit.Equal(t, info.Last, 0)
			break
		}
	}
	testkit.That(t, looks > 1, "it was through after %d looks, which tells nothing", looks)
}

// K3, R3: a reader far behind does not have its node look at all that came since.
func TestAReaderFarBehindMakesNobodyLookAtAll(t *testing.T) {
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	putIn(t, b, inTransaction(5, 0, 0, "a"))
	endIn(t, b, 5, 0, true)
	big := strings.Repeat("x", 500<<10)
	for range 40 {
		mustPut(t, b, frame(big))
	}
	b = y.open(t)
	c := testkit.Value(b.Cursor(t.Context(), "orders", DefaultGroup, "0", eventlog.Earliest()))(t)
	defer c.Close()
	testkit.Equal(t, testkit.Value(c.TryNext(t.Context()))(t).First, 0)
	lowest := eventlog.Sequence(100)
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpNext {
			lowest = min(lowest, op.At)
		}
		return nil
	})
	testkit.Equal(t, infoOf(t, b).Last, 41)
	testkit.That(t, lowest >= 40, "it looked from %d on", lowest)
}
