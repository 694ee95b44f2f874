package retrylog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// movable is retry logs without anybody who uses them.
type movable struct {
	t      testing.TB
	engine *disk.Engine
	store  *metatest.Memory
}

// waits gives what waits in a set of retry logs by position, in order, and nil where there is none.
func (m movable) waits(log, key string) map[int][]string {
	m.t.Helper()
	from, err := readMoved(context.Background(), m.store, log, key)
	testkit.Must(m.t, err)
	if from == nil {
		return nil
	}
	all := map[int][]string{}
	for name, c := range from.book.Cursors {
		f, err := from.open(context.Background(), m.engine, name, c)
		testkit.Must(m.t, err)
		for f.there {
			all[f.position] = append(all[f.position], fmt.Sprintf("%013d %s %d", f.head.Due.UnixMilli(), f.head.Subscription, f.head.Sequence))
			testkit.Must(m.t, f.next(context.Background()))
		}
	}
	return all
}

// C7: what waits on one machine waits for as long in the shards that it is of, and again when it is moved
// back; what was done is not moved.
func TestMovingRetryLogs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Sync: disk.OS, Log: testkit.Quiet()})
		testkit.Must(t, err)
		defer func() { testkit.Check(t, engine.Close()) }()
		m := movable{t, engine, metatest.NewMemory()}
		logs := testkit.Value(Open(context.Background(), Config{
			Engine: engine, Meta: m.store, Ladder: []time.Duration{time.Second, time.Minute}, Log: testkit.Quiet(),
		}))(t)
		now := time.UnixMilli(1_700_000_000_000)
		logs.now = func() time.Time { return now }
		want := map[int][]string{}
		for i := range rapid.IntRange(0, 40).Draw(r, "deliveries") {
			now = now.Add(time.Duration(rapid.IntRange(1, 3).Draw(r, "pause")) * time.Millisecond)
			d := pending.Delivery{
				Subscription: fmt.Sprint("sub-", rapid.IntRange(0, 9).Draw(r, "subscription")), Source: "topic-a", Sequence: int64(i),
				Published: now, Alive: now, LastAttempt: now, Form: schema.EventGridForm, Event: []byte(strings.Repeat("x", 1000)),
			}
			position := rapid.IntRange(0, 1).Draw(r, "position")
			all := []pending.Delivery{d}
			testkit.Must(t, logs.Put(context.Background(), logs.cfg.Ladder[position], all))
			want[position] = append(want[position], fmt.Sprintf("%013d %s %d", all[0].Due.UnixMilli(), d.Subscription, d.Sequence))
		}
		for position, waiting := range want {
			done := rapid.IntRange(0, len(waiting)).Draw(r, "done")
			at, _ := logs.books.waiting.find(retryLogName(position))
			at.Next = int64(done)
			testkit.Must(t, logs.books.waiting.set(context.Background(), retryLogName(position), at))
			if want[position] = waiting[done:]; done == len(waiting) {
				delete(want, position)
			}
		}

		testkit.Must(t, Divide(context.Background(), engine, m.store))
		testkit.That(t, m.waits(retryLogsLog, retryLogsKey) == nil, "the retry logs of one machine are left")
		for shard := range shards.Count {
			held := shards.Held{Shard: shard, Epoch: 3}
			for position, waiting := range m.waits(retryLogsLog+"-"+held.Name(), retryLogsUnder+held.Name()) {
				mine := slices.DeleteFunc(slices.Clone(want[position]), func(d string) bool { return shards.Of(strings.Fields(d)[1]) != shard })
				testkit.Slices(t, waiting, mine, "waiting in shard %d at %d", shard, position)
			}
			_, err := Open(context.Background(), Config{Engine: engine, Meta: m.store, Held: &held, Ladder: logs.cfg.Ladder, Log: testkit.Quiet()})
			testkit.Must(t, err, "the holder begins")
		}

		testkit.Must(t, engine.Provide(context.Background(), "unused", eventlog.Shape{Partitions: 1}))
		other, err := disk.Open(disk.Config{FS: vfs.NewMem(), Sync: disk.OS, Log: testkit.Quiet()})
		testkit.Must(t, err)
		defer func() { testkit.Check(t, other.Close()) }()
		testkit.Must(t, copyLogs(engine, other)) // names are used once
		back := movable{t, other, m.store}
		testkit.Must(t, Unite(context.Background(), other, m.store))
		for position, waiting := range back.waits(retryLogsLog, retryLogsKey) {
			testkit.Slices(t, waiting, want[position], "waiting at %d after it was moved back", position)
			delete(want, position)
		}
		testkit.Equal(t, len(want), 0, "retry logs that were lost")
		for _, prefix := range []string{retryLogsUnder, parkedUnder} {
			for _, e := range testkit.Value(m.store.List(context.Background(), prefix))(t) {
				testkit.That(t, e.Key == retryLogsKey || prefix == parkedUnder, "%s is left", e.Key)
				testkit.Equal(t, testkit.Value(bookCodec.Read(e))(t).Value.Epoch, 0, "the epoch of "+e.Key)
			}
		}
		testkit.Must(t, testkit.Err(Open(context.Background(), Config{Engine: other, Meta: m.store, Ladder: logs.cfg.Ladder, Log: testkit.Quiet()})), "one machine begins")
	})
}

// copyLogs copies all that an engine has.
func copyLogs(from, to *disk.Engine) error {
	all, err := from.Logs(context.Background())
	for _, log := range all {
		for number := range log.Shape.Partitions {
			if err != nil {
				return err
			}
			id := eventlog.PartitionID{Log: log.Name, Number: number}
			source, _ := from.Partition(id)
			target, _ := to.Partition(id)
			_, err = eventlog.Copy(context.Background(), source, target)
		}
	}
	return err
}
