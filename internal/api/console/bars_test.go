package console

import (
	"strconv"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// partitionsWith are partitions with so many events each.
func partitionsWith(events ...int64) (all []admin.Partition, total int64) {
	for i, n := range events {
		all = append(all, admin.Partition{ID: strconv.Itoa(i), First: 0, Last: n - 1, Empty: n == 0})
		total += n
	}
	return all, total
}

// V4: each partition has a bar, and the one that has much more than its share is named.
func TestBarsOfPartitions(t *testing.T) {
	s := newShare(partitionsWith(100, 100, 400, 0))
	testkit.Equal(t, s.Skew, "2 has 167 % more than its share")
	testkit.Equal(t, s.Skewed, "2")
	testkit.Equal(t, s.Label, "600 events in 4 partitions: 150 each on average, at most 400, in partition 2")
	testkit.Equal(t, s.Bars[2], bar{ID: "bar2", X: 621.3, Y: 26, Height: 78, Breath: 28, Label: "400", Of: "2", Tone: "k-odd"})
	testkit.Equal(t, s.Bars[3].Height, 0.)
	testkit.Equal(t, newShare(partitionsWith(10, 10)).Skew, "", "of an even share")
	testkit.That(t, newShare(partitionsWith(10)) == nil && newShare(partitionsWith(0, 0)) == nil, "a picture of nothing")
}

// V4: beyond a hundred partitions there is a heat map, of one path for each colour.
func TestManyPartitionsAreAHeatMap(t *testing.T) {
	events := make([]int64, 1024)
	for i := range events {
		events[i] = 100
	}
	events[0], events[1], events[1023] = 0, 60, 1000
	s := newShare(partitionsWith(events...))
	testkit.Equal(t, len(s.Bars), 0)
	testkit.Equal(t, s.HeatHeight, 16*heatTall)
	cells := 0
	for _, level := range s.Heat {
		cells += strings.Count(level.Path, "M")
	}
	testkit.Equal(t, cells, 1024)
	testkit.Equal(t, s.Heat[0], heatLevel{"h0", "M0 0h13v9h-13z"})
	testkit.Equal(t, s.Heat[2], heatLevel{"h3", "M957.6 165h13v9h-13z"})
	testkit.That(t, strings.HasPrefix(s.Skew, "1023 has"), "skew: %s", s.Skew)
}

// V1: a key is named only where it stands out for certain.
func TestBusiestKeyOfAPartition(t *testing.T) {
	found := func(events, count, off int64) admin.BusyKeys {
		return admin.BusyKeys{Events: events, Keys: []admin.BusyKey{{Partition: "7", Key: "h-7", Events: count, Error: off}}}
	}
	testkit.That(t, busiestOf(admin.BusyKeys{Events: 1000}) == nil, "no event has a key")
	testkit.That(t, busiestOf(found(19, 19, 0)) == nil, "too few events to tell")
	testkit.That(t, busiestOf(found(1000, 99, 0)) == nil, "a key like others")
	testkit.That(t, busiestOf(found(1000, 500, 401)) == nil, "a key that may be like others")
	testkit.Equal(t, *busiestOf(found(1000, 320, 0)), busiestKey{Key: "h-7", Short: "h-7", Partition: "7", Share: "32 %"})
	testkit.Equal(t, busiestOf(found(1000, 500, 100)).Share, "at least 40 %")
}

// R1: who may not see keys sees the page without them.
func TestAHubWithoutKeys(t *testing.T) {
	answers := fixed()
	_, _, h := newFixture(answers)
	testkit.That(t, strings.Contains(get(h, base+"hubs/sensors").Body.String(), `<code title="h-048213">h-048213</code>`), "the busiest key is not there")
	delete(answers, "GET /api/v1/hubs/{hub}/keys")
	w := get(h, base+"hubs/sensors")
	testkit.Equal(t, w.Code, 200)
	testkit.That(t, !strings.Contains(w.Body.String(), "One key"), "a key is named that is not known")
}
