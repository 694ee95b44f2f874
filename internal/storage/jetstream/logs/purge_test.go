package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4, C2: a partition that keeps an old event holds up the stream's beginning. What others have before
// their heads goes all the same, and whoever reads finds what is kept: at the node that has removed it,
// at one that was behind, and at one that begins.
func TestAPartitionThatHoldsUpTheOthers(t *testing.T) {
	for name, faults := range map[string]model.Faults{"announced": {}, "not announced": {AnnouncementLost: 1, Lag: 20 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			thin := func(cfg *Config) { small(cfg); cfg.thinBytes = 4 << 10 }
			inYard(t, faults, thin, func(t *testing.T, y *yard) {
				shape := eventlog.Shape{Partitions: 3, Retention: eventlog.Retention{Bytes: 16 << 10}}
				a, b := y.open(t, "a"), y.open(t, "b")
				testkit.Run(t, a.Run)
				mustAppend(t, handle(t, a, shape, 0), "old")
				busy, there := handle(t, a, shape, 1), handle(t, b, shape, 1)
				text := func(i int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", 196)) }
				behind := testkit.Value(there.Cursor(t.Context(), eventlog.Earliest()))(t)
				defer behind.Close()
				for i := range 1000 {
					mustAppend(t, busy, text(i))
					if i == 200 {
						testkit.Must(t, testkit.Err(behind.TryNext(t.Context())))
					}
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(3 * time.Minute)
				var held int
				for _, m := range y.cluster.Messages("h-orders-0") {
					if m.Subject == "1" {
						held += len(m.Data)
					}
				}
				testkit.That(t, held < 64<<10, "it holds %d", held)
				testkit.Slices(t, readAll(t, handle(t, y.open(t, "late"), shape, 0), eventlog.Earliest()), []string{"old"})
				for node, p := range map[string]eventlog.Partition{"here": busy, "there": there, "late": handle(t, y.open(t, "c"), shape, 1)} {
					bounds := testkit.Value(p.Bounds(t.Context()))(t)
					testkit.Equal(t, bounds.Next, 1000, "%s", node)
					for _, at := range []eventlog.Position{eventlog.Earliest(), eventlog.At(3), eventlog.At(980), eventlog.Since(bounds.LastTime)} {
						got := readAll(t, p, at)
						testkit.That(t, len(got) > 0 && len(got) < 200 && got[len(got)-1] == text(999), "%s from %v: %d", node, at, len(got))
					}
				}
				run := testkit.Value(behind.TryNext(t.Context()))(t)
				testkit.That(t, run.Len() > 0 && run.First > 500, "who was behind reads on at %d", run.First)
			})
		})
	}
}

// holed gives a log of two partitions, of which the first has an event and the second had ten, in two
// halves. All that others know is that there is a mark as of the end, and that their frames are gone.
func holed(t *testing.T, a *Engine, storage streams.Storage, between func(halfway [][]byte)) (after func([][]byte)) {
	t.Helper()
	mustAppend(t, handle(t, a, orders, 0), "old")
	p := handle(t, a, orders, 1)
	s := tending{stream: testkit.Value(p.(*partition).use(t.Context()))(t).s}
	mark := func() [][]byte {
		testkit.Must(t, s.foldedTo(t.Context(), 0))
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.marksLocked(time.Now(), nil)
	}
	for i := range 10 {
		if i == 5 {
			between(mark())
		}
		mustAppend(t, p, fmt.Sprint(i))
	}
	part := p.(*partition).part.Load()
	testkit.Equal(t, part.moveHead(endOf(11, part.fold.State())), true)
	testkit.Must(t, testkit.Err(s.writeMark(t.Context(), mark())))
	testkit.Must(t, storage.Purge(t.Context(), s.name, part.subject, 12))
	return func(late [][]byte) { testkit.Must(t, testkit.Err(s.writeMark(t.Context(), late))) }
}

// C2: a mark that comes late does not have who begins with it miss what was removed behind it.
func TestALateMarkAndHoles(t *testing.T) {
	inYard(t, model.Faults{}, asItIs, func(t *testing.T, y *yard) {
		var late [][]byte
		holed(t, y.open(t, "a"), y.cluster.Node("x"), func(halfway [][]byte) { late = halfway })(late)
		b := testkit.Value(handle(t, y.open(t, "b"), orders, 1).Bounds(t.Context()))(t)
		testkit.That(t, b.First == 10 && b.Next == 10, "bounds %+v", b)
	})
}

// C2: who has heard of half of what is gone by now knows all the same what there was, and reads on
// behind it.
func TestHolesAtAnotherNode(t *testing.T) {
	for name, first := range map[string]func(*testing.T, eventlog.Partition, eventlog.Cursor){
		"asks": func(t *testing.T, p eventlog.Partition, _ eventlog.Cursor) {
			b := testkit.Value(p.Bounds(t.Context()))(t)
			testkit.That(t, b.First == 10 && b.Next == 10, "bounds %+v", b)
		},
		"reads": func(t *testing.T, _ eventlog.Partition, c eventlog.Cursor) {
			run := testkit.Value(c.TryNext(t.Context()))(t)
			testkit.That(t, run.Len() == 0 && c.At() == 10, "it is at %d with %d", c.At(), run.Len())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{AnnouncementLost: 1}, func(cfg *Config) { cfg.CacheBytes = 1 }, func(t *testing.T, y *yard) {
				var there eventlog.Partition
				var c eventlog.Cursor
				holed(t, y.open(t, "a"), y.cluster.Node("x"), func([][]byte) {
					there = handle(t, y.open(t, "b"), orders, 1)
					testkit.Equal(t, testkit.Value(there.Bounds(t.Context()))(t).Next, 5)
					c = testkit.Value(there.Cursor(t.Context(), eventlog.Earliest()))(t)
				})
				defer c.Close()
				first(t, there, c)
				testkit.Equal(t, mustAppend(t, there, "next").First, 10)
			})
		})
	}
}
