package logs

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C5: an engine says that nothing can be appended while the servers have no majority and somebody has
// tried, and takes it back when they have one, although nobody tries any more.
func TestWritable(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		e := y.open(t, "a")
		p := handle(t, e, orders, 0)
		testkit.Must(t, e.Writable(t.Context()), "before anybody has tried")
		mustAppend(t, p, "x")
		y.cluster.StopServers(time.Minute)
		_, err := eventlog.Append(t.Context(), p, text("y"))
		testkit.That(t, err != nil, "the test shows nothing: it was stored")
		testkit.ErrorIs(t, e.Writable(t.Context()), eventlog.ErrUnavailable)
		time.Sleep(2 * time.Minute)
		testkit.Must(t, e.Writable(t.Context()), "when the servers are back")
	})
}

// C5: one stream that nobody leads does not say that the others take nothing.
func TestWritableBesideALostStream(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		e := y.open(t, "a")
		lost, other := handle(t, e, orders, 0), provided(t, e, "other", eventlog.KindHub)
		mustAppend(t, lost, "x")
		y.cluster.LoseLeader("h-orders-0", time.Hour)
		for range 10 {
			_, err := eventlog.Append(t.Context(), lost, text("y"))
			testkit.That(t, err != nil, "the test shows nothing: it was stored")
			mustAppend(t, other, "z")
			testkit.Must(t, e.Writable(t.Context()))
		}
		time.Sleep(time.Minute)
		testkit.Must(t, e.Writable(t.Context()), "while nothing is tried")
		y.cluster.StopServers(time.Minute)
		_, err := eventlog.Append(t.Context(), other, text("z"))
		testkit.That(t, err != nil, "the test shows nothing: it was stored")
		testkit.ErrorIs(t, e.Writable(t.Context()), eventlog.ErrUnavailable, "without all of them")
	})
}
