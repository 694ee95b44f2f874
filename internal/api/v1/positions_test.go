package v1

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"pgregory.net/rapid"
)

// H4: whatever an id says is read from it again, exactly.
func TestPositionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, broker.MaxPartitions-1), 1, 200, rapid.ID).Draw(t, "partitions")
		var ids []string
		var next []eventlog.Sequence
		want := map[string]eventlog.Sequence{}
		for _, n := range numbers {
			position := eventlog.Sequence(rapid.Int64Range(0, maxSequence).Draw(t, "place"))
			ids, next = append(ids, strconv.Itoa(n)), append(next, position)
			want[strconv.Itoa(n)] = position
		}
		id := string(appendPositions(nil, ids, next))
		if got, ok := parsePositions(id); !ok || !maps.Equal(got, want) {
			t.Fatalf("%s gives %v, want %v", id, got, want)
		}
	})
}

// The id of a large hub is small enough for any proxy.
func TestPositionsAreCompact(t *testing.T) {
	ids := broker.Hub{Partitions: broker.MaxPartitions}.PartitionIDs()
	next := make([]eventlog.Sequence, len(ids))
	for i := range next {
		next[i] = eventlog.Sequence(1_000_000_000 + i*7919%4000)
	}
	if n := len(appendPositions(nil, ids, next)); n > 3<<10 {
		t.Errorf("it measures %d bytes", n)
	}
}

func TestInvalidPositions(t *testing.T) {
	for _, s := range []string{"", "p1.", "p1.A", "p1.AA", "p1.AAA", "p1.AAEA====", "p1.AAEB", "p1.AAEAAAEA", "p1._w", "p2.AAEA", "p1.gAgBAA", "0:1,0:2", ":1", "0:-1"} {
		if got, ok := parsePositions(s); ok {
			t.Errorf("%q gives %v", s, got)
		}
	}
	if got, ok := parsePositions("p1.AAEA"); !ok || len(got) != 1 || got["0"] != 0 {
		t.Errorf("got %v", got)
	}
}

// Whatever comes from strangers is either an id that we could have written or none.
func FuzzParsePositions(f *testing.F) {
	f.Add("0:17,1:4")
	f.Add("p1.AAEA")
	f.Fuzz(func(t *testing.T, s string) {
		positions, ok := parsePositions(s)
		if ok && len(positions) == 0 {
			t.Errorf("%q names nothing", s)
		}
		for id, position := range positions {
			if position < 0 || id == "" {
				t.Errorf("%q gives %q:%d", s, id, position)
			}
		}
	})
}

// H4: a client that loses its tail of the latest before the first event misses nothing,
// whatever the number of partitions.
func TestTailOfTheLatestCanBeResumedBeforeItsFirstEvent(t *testing.T) {
	for _, partitions := range []int{2, maxPlainPositions + 8} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.hub("orders", partitions)
				y.send("orders", "1", "old")
				f := y.follow(t, "/api/v1/hubs/orders/events?from=latest")
				if got, ok := f.idOnly(); !ok {
					t.Fatalf("the tail begins with %q", got)
				}
				f.leave()
				y.send("orders", "1", "missed")
				f = y.follow(t, "/api/v1/hubs/orders/events?from=latest", "Last-Event-ID", f.id)
				if e := f.event(); e.text() != "missed" {
					t.Errorf("got %+v", e)
				}
			})
		})
	}
}

// idOnly reads the first line, which is an id, and the empty one that ends it.
func (f *follower) idOnly() (line string, ok bool) {
	f.scan.Scan()
	line = f.scan.Text()
	_, err := fmt.Sscanf(line, "id: %s", &f.id)
	return line, err == nil && f.scan.Scan() && f.scan.Text() == ""
}
