package logs

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: every node gives the logs that any of them has provided, and none that was removed.
func TestLogsOfAllNodes(t *testing.T) {
	y := newYard(1, model.Faults{})
	a, b := y.open(t, "a"), y.open(t, "b")
	orders := eventlog.Shape{Partitions: 3, Retention: eventlog.Retention{Bytes: 1 << 20}}
	letters := eventlog.Shape{Partitions: 1, Kind: eventlog.KindDeadLetters}
	testkit.Must(t, a.Provide(t.Context(), "orders", orders))
	testkit.Must(t, b.Provide(t.Context(), "dead-1", letters))
	testkit.Must(t, b.Provide(t.Context(), "passing", eventlog.Shape{Partitions: 1}))
	testkit.Must(t, b.Remove(t.Context(), "passing"))
	for name, e := range map[string]*Engine{"a": a, "b": b} {
		all, err := e.Logs(t.Context())
		testkit.Must(t, err)
		testkit.Slices(t, all, []eventlog.Described{{Name: "dead-1", Shape: letters, Known: true}, {Name: "orders", Shape: orders, Known: true}}, "at "+name)
	}
	testkit.Must(t, a.Close())
	testkit.ErrorIs(t, testkit.Err(a.Logs(t.Context())), eventlog.ErrClosed, "of a closed one")
}

// C7: what one node allows to be removed stays while another copies the logs; what retention removes
// does not.
func TestWhatANodeHoldsOthersKeep(t *testing.T) {
	y := newYard(1, model.Faults{})
	a, b := y.open(t, "a"), y.open(t, "b")
	testkit.Run(t, a.Run)
	testkit.Run(t, b.Run)
	parked, hub := eventlog.PartitionID{Log: "parked"}, eventlog.PartitionID{Log: "hub"}
	testkit.Must(t, b.Provide(t.Context(), parked.Log, eventlog.Shape{Partitions: 1, Kind: eventlog.KindParked}))
	testkit.Must(t, b.Provide(t.Context(), hub.Log, eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Bytes: 2000}}))
	release, err := a.Hold(t.Context())
	testkit.Must(t, err)
	p, kept := testkit.Value(b.Partition(parked))(t), testkit.Value(b.Partition(hub))(t)
	for i := range 100 {
		for _, to := range []eventlog.Partition{p, kept} {
			_, err := eventlog.Append(t.Context(), to, eventlog.Batch{Events: []eventlog.Event{{Message: []byte(fmt.Sprintf("%0100d", i))}}})
			testkit.Must(t, err)
		}
		testkit.Must(t, p.Trim(t.Context(), eventlog.Sequence(i)))
	}
	first := func(p eventlog.Partition) eventlog.Sequence { return testkit.Value(p.Bounds(t.Context()))(t).First }
	testkit.Eventually(t, "what retention removes to be removed", func() bool { return first(kept) > 0 })
	testkit.Must(t, p.Trim(t.Context(), 100))
	testkit.Equal(t, first(p), 0, "the first event while it is held")
	testkit.Equal(t, first(testkit.Value(a.Partition(parked))(t)), 0, "the first event at the other node")
	testkit.Must(t, release(t.Context()))
	testkit.Must(t, release(t.Context()), "twice")
	testkit.Eventually(t, "what was held to be removed", func() bool { return first(p) == 100 })
}
