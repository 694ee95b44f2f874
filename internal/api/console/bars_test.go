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
