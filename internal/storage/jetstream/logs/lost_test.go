package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/testkit"
)

// lose has servers of a stream lose messages, first to last; all servers where none is named.
func (y *yard) lose(t *testing.T, stream string, first, last streams.Seq, servers ...int) {
	t.Helper()
	if servers == nil {
		servers = []int{-1}
	}
	for seq := first; seq <= last; seq++ {
		for _, server := range servers {
			testkit.MustThat(t, y.cluster.Hide(stream, seq, server), "no message %d", seq)
		}
	}
}

// appendTexts appends the numbers that events will get, each as a text.
func appendTexts(t *testing.T, p eventlog.Partition, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		testkit.MustEqual(t, mustAppend(t, p, fmt.Sprint(i)).First, eventlog.Sequence(i), "the number of an event")
	}
}

// C1, C2: a node that begins to follow a stream of which its leader and all servers but one have lost something
// finds it at that one, and goes on with the numbers that others have.
func TestNodesThatStartWhereServersHaveLost(t *testing.T) {
	for name, lost := range map[string][2]streams.Seq{"at the beginning": {1, 3}, "in the midst": {17, 21}, "at the end": {38, 40}} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes, cfg.Replicas = 1, 5 }, func(t *testing.T, y *yard) {
				a := y.open(t, "a")
				p := handle(t, a, orders, 0)
				appendTexts(t, p, 0, 40)
				y.lose(t, "h-orders-0", lost[0], lost[1], 0, 1, 2, 3)
				for i := range 20 {
					there := handle(t, y.open(t, fmt.Sprint("b", i)), orders, 0)
					testkit.MustEqual(t, testkit.Value(there.Bounds(t.Context()))(t).Next, eventlog.Sequence(40+i), "the next number")
					appendTexts(t, there, 40+i, 41+i)
					testkit.MustEqual(t, len(readAll(t, there, eventlog.Earliest())), 41+i, "events that are read")
				}
				testkit.MustEqual(t, len(readAll(t, p, eventlog.Earliest())), 60, "events that are read at the first node")
			})
		})
	}
}

// C1, C2: likewise in a stream that logs share, of which others were removed, so that it has holes.
func TestSharedStreamsOfWhichServersHaveLost(t *testing.T) {
	shape := eventlog.Shape{Partitions: 1, Kind: eventlog.KindTopic}
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes, cfg.Replicas = 1, 5 }, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		stream := poolStream("topic", shape.Kind)
		other := ""
		for i := 0; poolStream(other, shape.Kind) != stream; i++ {
			other = fmt.Sprint("other-", i)
		}
		testkit.Must(t, a.Provide(t.Context(), "topic", shape))
		testkit.Must(t, a.Provide(t.Context(), other, shape))
		id := eventlog.PartitionID{Log: "topic"}
		p, gone := testkit.Value(a.Partition(id))(t), testkit.Value(a.Partition(eventlog.PartitionID{Log: other}))(t)
		for i := range 20 {
			appendTexts(t, p, i, i+1)
			mustAppend(t, gone, "x")
		}
		testkit.Must(t, a.Remove(t.Context(), other))
		y.lose(t, stream, 15, 15, 0, 1, 2, 3)
		for i := range 20 {
			there := testkit.Value(y.open(t, fmt.Sprint("b", i)).Partition(id))(t)
			appendTexts(t, there, 20+i, 21+i)
		}
	})
}

// C2: what all servers have lost is not passed by: a node that needs it is unavailable until one that has folded
// it has written a mark. No number is given twice, and those that are lost are told as such.
func TestWhatAllServersHaveLost(t *testing.T) {
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes = 1 }, func(t *testing.T, y *yard) {
		a := y.open(t, "a")
		here := handle(t, a, orders, 0)
		appendTexts(t, here, 0, 40)
		y.lose(t, "h-orders-0", 21, 23)
		there := handle(t, y.open(t, "b"), orders, 0)
		_, err := there.Bounds(t.Context())
		testkit.ErrorIs(t, err, eventlog.ErrUnavailable)
		testkit.That(t, strings.Contains(err.Error(), "no server that was asked has its message 21"), "it says %v", err)
		appendTexts(t, here, 40, 41)
		testkit.Run(t, a.Run)
		time.Sleep(2 * time.Minute)
		appendTexts(t, there, 41, 42)
		appendTexts(t, here, 42, 43)
		for node, p := range map[string]eventlog.Partition{"there": there, "late": handle(t, y.open(t, "c"), orders, 0)} {
			got := logtest.Readable(t, p, eventlog.Earliest())
			testkit.MustEqual(t, len(got), 23, node)
			testkit.Slices(t, got[19:], []string{"19 19", "no 20 to 40", "41 41", "42 42"}, node)
		}
	})
}

// C2, C5: where nobody is left who has folded what all servers have lost, it is waited for, and then numbers go on
// behind all that are known to have been given; not as long as a server is away.
func TestWhatNobodyHas(t *testing.T) {
	inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes = 1 }, func(t *testing.T, y *yard) {
		appendTexts(t, handle(t, y.open(t, "a"), orders, 0), 0, 40)
		y.lose(t, "h-orders-0", 21, 23)
		y.cluster.StopReplica("h-orders-0", 2, time.Hour)
		p := handle(t, y.open(t, "b"), orders, 0)
		for range 10 {
			testkit.MustErrorIs(t, testkit.Err(p.Bounds(t.Context())), eventlog.ErrUnavailable)
			time.Sleep(5 * time.Minute)
		}
		time.Sleep(20 * time.Minute)
		testkit.Must(t, testkit.Err(p.Sealed(t.Context())))
		testkit.That(t, mustAppend(t, p, "next").First >= 39, "a number is given again")
	})
}

// C2, C5: a reader is told that events are lost only when every server was there to be asked for them.
func TestReadersWaitForServersThatAreAway(t *testing.T) {
	for name, lost := range map[string]streams.Seq{"before the index": 5, "in the index": 32} {
		t.Run(name, func(t *testing.T) {
			inYard(t, model.Faults{}, func(cfg *Config) { cfg.CacheBytes, cfg.indexFrames = 1, 16 }, func(t *testing.T, y *yard) {
				p := handle(t, y.open(t, "a"), orders, 0)
				appendTexts(t, p, 0, 40)
				y.lose(t, "h-orders-0", lost, lost+2, 0, 1)
				y.cluster.StopReplica("h-orders-0", 2, 5*time.Minute)
				c := testkit.Value(p.Cursor(t.Context(), eventlog.At(eventlog.Sequence(lost-1))))(t)
				testkit.ErrorIs(t, testkit.Err(c.Next(t.Context())), eventlog.ErrUnavailable)
				time.Sleep(5 * time.Minute)
				testkit.Equal(t, len(readAll(t, p, eventlog.Earliest())), 40, "events that are read")
			})
		})
	}
}
