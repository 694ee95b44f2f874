package logs

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4, C1: where a partition begins is known at nodes that do not tend it, by marks.
func TestHeadsComeByMarks(t *testing.T) {
	for name, faults := range map[string]model.Faults{"announced": {}, "not announced": {AnnouncementLost: 1}} {
		t.Run(name, func(t *testing.T) {
			inYard(t, faults, asItIs, func(t *testing.T, y *yard) {
				a := y.open(t, "a")
				testkit.Run(t, a.Run)
				here, there := handle(t, a, orders, 0), handle(t, y.open(t, "b"), orders, 0)
				for i := range 50 {
					mustAppend(t, there, fmt.Sprint(i))
				}
				testkit.Equal(t, testkit.Value(here.Bounds(t.Context()))(t).Next, 50)
				testkit.Must(t, here.Trim(t.Context(), 30))
				time.Sleep(10 * time.Second)
				testkit.Must(t, testkit.Err(there.Sealed(t.Context())))
				testkit.Equal(t, testkit.Value(there.Bounds(t.Context()))(t).First, 30)
			})
		})
	}
}

// C1: a checkpoint that was made at another node may be ahead of what is known here.
func TestAPositionThatIsKnownElsewhere(t *testing.T) {
	inYard(t, model.Faults{AnnouncementLost: 1}, asItIs, func(t *testing.T, y *yard) {
		here, there := handle(t, y.open(t, "a"), orders, 0), handle(t, y.open(t, "b"), orders, 0)
		testkit.Must(t, testkit.Err(there.Bounds(t.Context())))
		for i := range 10 {
			mustAppend(t, here, fmt.Sprint(i))
		}
		testkit.Slices(t, readAll(t, there, eventlog.After(8)), []string{"9"})
		_, err := there.Cursor(t.Context(), eventlog.At(11))
		ahead, ok := errors.AsType[*eventlog.PositionError](err)
		testkit.That(t, ok && ahead.Last == 9, "got %v", err)
	})
}

// C1: who made a stream of a log that was removed meanwhile, and died, leaves it to be swept.
func TestStreamsOfRemovedLogsAreSwept(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		testkit.Must(t, a.Provide(t.Context(), "gone", orders))
		handle(t, a, orders, 0)
		testkit.Must(t, a.Remove(t.Context(), "gone"))
		node := y.cluster.Node("x")
		testkit.Must(t, node.Make(t.Context(), "h-gone-0", streams.Config{}))
		testkit.Must(t, node.Make(t.Context(), "h-strange-0", streams.Config{}))
		testkit.Run(t, a.Run)
		time.Sleep(time.Minute)
		testkit.Slices(t, testkit.Value(node.Names(t.Context()))(t), []string{"h-orders-0", "h-strange-0"})
	})
}

// C2: a mark that comes late, or twice, describes a state whose frames may have been removed meanwhile.
// Nobody begins with it.
func TestAMarkThatComesLate(t *testing.T) {
	inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		testkit.Run(t, a.Run)
		p := handle(t, a, eventlog.Shape{Partitions: 4, Retention: eventlog.Retention{Age: 20 * time.Second}}, 0)
		var old []byte
		for i := range 200 {
			mustAppend(t, p, fmt.Sprint(i))
			for _, m := range y.cluster.Messages("h-orders-0") {
				if old == nil && m.Subject == markSubject {
					old = m.Data
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		first := y.cluster.Messages("h-orders-0")[0].Seq
		testkit.MustThat(t, old != nil && first > 50, "the stream begins with %d", first)
		node := y.cluster.Node("x")
		for range 2 {
			node.Publish("h-orders-0", markSubject, old, func(_ streams.Seq, err error) { testkit.Check(t, err) })
			time.Sleep(time.Second)
		}
		want := testkit.Value(p.Bounds(t.Context()))(t)
		late := handle(t, y.open(t, "b"), orders, 0)
		got := testkit.Value(late.Bounds(t.Context()))(t)
		testkit.Equal(t, got.Next, want.Next)
		all := readAll(t, late, eventlog.Earliest())
		testkit.That(t, len(all) > 0 && all[len(all)-1] == "199", "it reads %q", all)
		testkit.Slices(t, readAll(t, late, eventlog.At(195)), []string{"195", "196", "197", "198", "199"})
		testkit.Slices(t, readAll(t, late, eventlog.Since(want.LastTime)), []string{"199"})
	})
}

// C5: a node whose clock is wrong gives events the times of the clock that all nodes go by, and removes
// what is too old by that one.
func TestAClockThatIsWrong(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		t.Run(fmt.Sprint("others are ahead by ", ahead), func(t *testing.T) {
			inYard(t, model.Faults{}, small, func(t *testing.T, y *yard) {
				y.cfg.Ahead = func() time.Duration { return ahead }
				e := y.open(t, "a")
				testkit.Run(t, e.Run)
				p := handle(t, e, eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Age: time.Hour}}, 0)
				for range 50 {
					mustAppend(t, p, "x")
					time.Sleep(time.Second)
				}
				newest := testkit.Value(p.Bounds(t.Context()))(t).LastTime
				off := newest.Sub(time.Now().Add(ahead))
				testkit.That(t, off.Abs() < time.Minute, "the newest event is off by %v", off)
				time.Sleep(30 * time.Minute)
				testkit.Equal(t, len(readAll(t, p, eventlog.Earliest())), 50, "events that are left after half an hour")
				time.Sleep(time.Hour)
				testkit.Equal(t, len(readAll(t, p, eventlog.Earliest())), 0, "events that are left after the hour")
			})
		})
	}
}
