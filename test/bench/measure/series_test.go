package measure

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values Series
		want   float64
	}{
		{"one value is its own median", Series{3}, 3},
		{"of three the middle one, whatever their order", Series{9, 1, 2}, 2},
		{"of four the mean of the two in the middle", Series{1, 2, 4, 100}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Equal(t, tt.values.Median(), tt.want)
		})
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	// Both sides are ten times slower in the second round; the ratio is not.
	got := Series{100, 10, 120}.Over(Series{50, 5, 60})
	for i, v := range got {
		testkit.Equal(t, v, 2, "round %d", i)
	}
}

func TestNumbersHaveThreeDigitsThatCount(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.0012: "0.0012", 0.618: "0.62", 1: "1", 15: "15", 15.26: "15.3", 456.7: "457",
		9876.4: "9876", 12345: "12.3 k", 7654321: "7.65 M",
	} {
		testkit.Equal(t, Number(value), want, "%v", value)
	}
}
