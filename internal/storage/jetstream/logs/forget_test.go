package logs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/testkit"
)

// slack is for simulated days: what is due is looked for once a minute.
func slack(cfg *Config) { cfg.TendInterval = time.Minute }

// keys are the logs that have entries.
func (y *yard) keys(t *testing.T) (names []string) {
	t.Helper()
	for _, entry := range testkit.Value(y.store.List(t.Context(), keyPrefix))(t) {
		names = append(names, entry.Key[len(keyPrefix):])
	}
	return names
}

// provided provides a log and gives its first partition.
func provided(t *testing.T, e *Engine, log string, kind eventlog.Kind) eventlog.Partition {
	t.Helper()
	testkit.Must(t, e.Provide(t.Context(), log, eventlog.Shape{Partitions: 2, Kind: kind}))
	return testkit.Value(e.Partition(eventlog.PartitionID{Log: log}))(t)
}

// C1: the entry of a removed log goes when every node has long heard of it, and not before; a node that
// knew the log cannot make it anew.
func TestEntriesOfRemovedLogsGo(t *testing.T) {
	for _, kind := range []eventlog.Kind{eventlog.KindHub, eventlog.KindParked} {
		t.Run(kind.String(), func(t *testing.T) {
			inYard(t, model.Faults{}, slack, func(t *testing.T, y *yard) {
				a, late := y.open(t, "a"), y.open(t, "late")
				testkit.Run(t, a.Run)
				mustAppend(t, provided(t, a, "gone", kind), "x")
				provided(t, late, "gone", kind)
				kept := provided(t, a, "kept", kind)
				mustAppend(t, kept, "before")
				testkit.Must(t, a.Remove(t.Context(), "gone"))
				time.Sleep(removalHeard - time.Hour)
				testkit.Slices(t, testkit.Value(a.Removed(t.Context()))(t), nil)
				time.Sleep(2 * time.Hour)
				testkit.Slices(t, testkit.Value(a.Removed(t.Context()))(t), []string{"gone"})
				mustAppend(t, kept, "after") // a mark that knows nothing of what is gone
				time.Sleep(removalKept - removalHeard - 2*time.Hour)
				testkit.Slices(t, y.keys(t), []string{"gone", "kept"}, "within the week")
				time.Sleep(4 * time.Hour)
				testkit.Slices(t, y.keys(t), []string{"kept"}, "after the week")

				testkit.ErrorIs(t, late.Provide(t.Context(), "gone", eventlog.Shape{Partitions: 2, Kind: kind}), eventlog.ErrRemoved)
				testkit.Slices(t, y.keys(t), []string{"kept"}, "after a node that was late")
				testkit.Must(t, a.Close())
				again := provided(t, y.open(t, "b"), "kept", kind)
				testkit.Slices(t, readAll(t, again, eventlog.Earliest()), []string{"before", "after"})
			})
		})
	}
}

// C2: events stay where a log's entry is gone that nobody removed: only an entry that says removed ends
// them.
func TestALogWithoutAnEntryKeepsItsEvents(t *testing.T) {
	inYard(t, model.Faults{}, slack, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		mustAppend(t, provided(t, a, "orders", eventlog.KindHub), "kept")
		before := testkit.Value(a.cfg.Storage.Names(t.Context()))(t)
		entry := testkit.Value(y.store.Get(t.Context(), keyPrefix+"orders"))(t)
		testkit.Must(t, y.store.Delete(t.Context(), entry.Key, entry.Revision))
		testkit.Must(t, a.sweep(t.Context()))
		testkit.Slices(t, testkit.Value(a.cfg.Storage.Names(t.Context()))(t), before, "streams")
	})
}

// C2: in a stream that logs share, the newest mark may tell of a log that was removed. As long as it does,
// the entry says what became of it; and what a node stores that has not heard is removed.
func TestARemovedLogThatAMarkNames(t *testing.T) {
	inYard(t, model.Faults{}, slack, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		const log = "gone"
		stop := testkit.Run(t, a.Run)
		p := provided(t, a, log, eventlog.KindParked)
		mustAppend(t, p, "x")
		time.Sleep(10 * time.Minute) // it is marked
		stop()
		stream := poolStream(log, eventlog.KindParked)
		testkit.Must(t, a.Remove(t.Context(), log))
		testkit.Must(t, a.Close())

		b := y.open(t, "b")
		testkit.Run(t, b.Run)
		late := make(chan error, 1)
		y.cluster.Node("late").Publish(stream, log+"/0", []byte("not even a frame"), func(_ streams.Seq, err error) { late <- err })
		testkit.Must(t, <-late)
		time.Sleep(removalKept + 2*time.Hour)
		testkit.Slices(t, y.keys(t), []string{log}, "while the newest mark tells of it")
		for _, m := range y.cluster.Messages(stream) {
			testkit.Equal(t, m.Subject, markSubject, "what is left in the stream")
		}
		other := ""
		for i := 0; other == "" || poolStream(other, eventlog.KindParked) != stream; i++ {
			other = fmt.Sprint("other-", i)
		}
		mustAppend(t, provided(t, b, other, eventlog.KindParked), "y")
		time.Sleep(3 * time.Hour)
		testkit.Slices(t, y.keys(t), []string{other}, "after another mark")
	})
}

// An entry of a version that did not note when a log was removed goes a week after it was seen.
func TestEntriesWithoutATimeGo(t *testing.T) {
	inYard(t, model.Faults{}, slack, func(t *testing.T, y *yard) {
		old := definition{kind: eventlog.KindHub, partitions: 1, streams: 1, state: isRemoved}
		testkit.Must(t, testkit.Err(y.store.CompareAndSet(t.Context(), keyPrefix+"old", 0, old.encode())))
		testkit.Run(t, y.open(t, "a").Run)
		testkit.Run(t, y.open(t, "b").Run)
		time.Sleep(removalKept - time.Hour)
		testkit.Slices(t, y.keys(t), []string{"old"})
		time.Sleep(4 * time.Hour)
		testkit.Slices(t, y.keys(t), nil)
		_, err := y.store.Get(context.Background(), keyPrefix+"old")
		testkit.ErrorIs(t, err, meta.ErrNotFound)
	})
}
