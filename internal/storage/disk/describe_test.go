package disk_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: a backup finds every log, also those that nobody has provided since the start.
func TestLogsAreListed(t *testing.T) {
	mem := vfs.NewMem()
	e := mustOpen(t, config(disk.Always, mem))
	logs := func() []eventlog.Described { return testkit.Value(e.Logs(t.Context()))(t) }
	testkit.Equal(t, len(logs()), 0, "logs of an empty folder")

	shape := eventlog.Shape{Partitions: 3, Kind: eventlog.KindParked, Retention: eventlog.Retention{Age: time.Hour}}
	testkit.Must(t, e.Provide(t.Context(), "parked-1", shape))
	for _, id := range []eventlog.PartitionID{{Log: "parked-1", Number: 1}, {Log: "orders", Number: 4}, {Log: "gone", Number: 0}} {
		mustAppend(t, testkit.Value(e.Partition(id))(t), "x")
	}
	testkit.Must(t, e.Remove(t.Context(), "gone"))
	unknown := eventlog.Described{Name: "orders", Shape: eventlog.Shape{Partitions: 5}}
	testkit.Slices(t, logs(), []eventlog.Described{unknown, {Name: "parked-1", Shape: shape, Known: true}}, "while it is open")

	testkit.Must(t, e.Close())
	testkit.ErrorIs(t, testkit.Err(e.Logs(t.Context())), eventlog.ErrClosed, "of a closed one")
	e = mustOpen(t, config(disk.Always, mem))
	parked := eventlog.Described{Name: "parked-1", Shape: eventlog.Shape{Partitions: 2}}
	testkit.Slices(t, logs(), []eventlog.Described{unknown, parked}, "after the next start")
}

// C7: what Trim allows to be removed stays while a backup reads; what retention removes does not.
func TestHeldEventsStay(t *testing.T) {
	e := mustOpen(t, config(disk.Always, vfs.NewMem()))
	testkit.Run(t, e.Run)
	p := mustPartition(t, e, eventlog.Retention{})
	old := testkit.Value(e.Partition(eventlog.PartitionID{Log: "old", Number: 0}))(t)
	fill(t, p, 0, 100)
	fill(t, old, 0, 100)
	first := func(p eventlog.Partition) eventlog.Sequence { return testkit.Value(p.Bounds(t.Context()))(t).First }
	hold := func() func() {
		release, err := e.Hold(t.Context())
		testkit.Must(t, err)
		return func() { testkit.Must(t, release(t.Context())) }
	}
	one, other := hold(), hold()
	testkit.Must(t, p.Trim(t.Context(), 90))
	testkit.Must(t, e.Provide(t.Context(), "old", eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Bytes: 40 << 10}}))
	testkit.Eventually(t, "what retention removes to be removed", func() bool { return first(old) > 0 })
	one()
	one()
	testkit.Must(t, p.Trim(t.Context(), 90))
	testkit.Equal(t, first(p), 0, "the first event while one holds")
	other()
	testkit.Eventually(t, "what was held to be removed", func() bool { return first(p) > 0 })
}

// C7, H3: the power fails while numbers are left out, at any operation: they are, or nothing has happened.
func TestSkippingSurvivesPowerCuts(t *testing.T) {
	outcomes := map[eventlog.Sequence]int{}
	for seed := range uint64(80) {
		mem := vfs.NewMem()
		e := mustOpen(t, config(disk.Always, mem))
		p := mustPartition(t, e, eventlog.Retention{})
		fill(t, p, 0, 3)
		mem.FailAfter(int(seed % 20))
		_ = p.(eventlog.Skipper).SkipTo(t.Context(), 10)
		mem = mem.CutPower(newRand(seed))
		p = mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{})
		b := testkit.Value(p.Bounds(t.Context()))(t)
		outcomes[b.Next]++
		testkit.That(t, b.Next == 3 || b.Next == 10, "seed %d: it goes on at %d", seed, b.Next)
		mustAppend(t, p, "next")
		got, err := readFrom(t, p, eventlog.At(b.Next))
		testkit.Must(t, err)
		testkit.Slices(t, got, []string{"next"}, "seed %d", seed)
		got, err = readFrom(t, p, eventlog.Earliest())
		testkit.That(t, len(got) >= 3 && (err == nil) == (b.Next == 3), "seed %d: %d events, then %v", seed, len(got), err)
	}
	testkit.That(t, outcomes[3] > 0 && outcomes[10] > 0, "always the same became of it: %v", outcomes)
}
