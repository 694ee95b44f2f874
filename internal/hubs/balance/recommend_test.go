package balance

import (
	"slices"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestRecommendRoundsUpToCountsThatSpreadEvenly(t *testing.T) {
	for _, c := range []struct {
		name                          string
		lag, target, partitions, want int
	}{
		{"no lag needs nobody", 0, 100, 32, 0},
		{"a checkpoint ahead of the end is no lag", -5, 100, 32, 0},
		{"one event needs one", 1, 100, 32, 1},
		{"exactly the target needs one", 100, 100, 32, 1},
		{"one above needs two", 101, 100, 32, 2},
		{"seven spread 32 with at most five each", 700, 100, 32, 7},
		{"nine are no better than eight: eleven", 900, 100, 32, 11},
		{"twelve: sixteen", 1200, 100, 32, 16},
		{"seventeen: all", 1700, 100, 32, 32},
		{"never more than partitions", 1 << 40, 1, 32, 32},
		{"a target of nothing counts as one event", 3, 0, 32, 3},
		{"a hub without partitions needs nobody", 10, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Equal(t, Recommend(c.lag, c.target, c.partitions), c.want, "%s", c.name)
		})
	}
}

// The even counts are ceil(P/k) for k = 1..P.
func TestRecommendIsTheLeastEvenCount(t *testing.T) {
	for partitions := 1; partitions <= 70; partitions++ {
		var even []int
		for k := partitions; k >= 1; k-- {
			even = append(even, (partitions+k-1)/k)
		}
		for wanted := 1; wanted <= partitions; wanted++ {
			want := even[slices.IndexFunc(even, func(n int) bool { return n >= wanted })]
			testkit.MustEqual(t, Recommend(wanted, 1, partitions), want,
				"%d wanted of %d partitions", wanted, partitions)
		}
	}
}
