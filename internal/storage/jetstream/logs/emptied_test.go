package logs

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1: logs come and go in a stream that others share, so that nothing is left of it, or nothing at its
// beginning, its end or in between, and no mark stands for what is gone. Nodes that were there, that
// come late, or that were behind go on at once.
func TestStreamsThatWereEmptied(t *testing.T) {
	shape := eventlog.Shape{Partitions: 1, Kind: eventlog.KindTopic}
	var names []string // of logs that share a stream
	for i := 0; len(names) < 41; i++ {
		if name := fmt.Sprint("topic-", i); poolStream(name, shape.Kind) == poolStream("topic", shape.Kind) {
			names = append(names, name)
		}
	}
	kept := names[40]
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		use := func(e *Engine, name string, events int) eventlog.Partition {
			t.Helper()
			testkit.Must(t, e.Provide(t.Context(), name, shape))
			p := testkit.Value(e.Partition(eventlog.PartitionID{Log: name}))(t)
			before := testkit.Value(p.Sealed(t.Context()))(t).Next
			for i := range events {
				testkit.Equal(t, mustAppend(t, p, fmt.Sprint(i)).First, before+eventlog.Sequence(i), "number in %s", name)
			}
			return p
		}
		began := time.Now()
		a, b := y.open(t, "a"), y.open(t, "b")
		for i := range 20 {
			name, next := names[2*i], names[2*i+1]
			if i%2 == 0 {
				use(b, name, 2) // the other times it is behind
			}
			use(a, name, 5)
			testkit.Must(t, a.Remove(t.Context(), name))
			late := y.open(t, fmt.Sprint("late-", i))
			use(late, next, 1)
			if i >= 10 {
				use(late, kept, i%3)
			}
			testkit.Must(t, late.Remove(t.Context(), next))
		}
		testkit.That(t, time.Since(began) < time.Minute, "it took %v", time.Since(began))
	})
}
