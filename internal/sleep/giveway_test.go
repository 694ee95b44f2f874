package sleep

import (
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/testkit"
)

// Whoever waits for others stops when there are enough of them, and when nobody comes.
func TestGiveWay(t *testing.T) {
	for _, c := range []struct {
		name   string
		enough int
		first  int // have come before, and one more at each look
		last   int // up to so many
		looks  int
	}{
		{"enough have come", 3, 3, 3, 1},
		{"more than enough have come", 3, 5, 5, 1},
		{"nobody comes", 3, 1, 1, 1 + giveWayIdle},
		{"one comes at each look until there are enough", 5, 1, 9, 5},
		{"some come, and then no more", 9, 1, 5, 5 + giveWayIdle},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which looking takes no time
				looks := 0
				GiveWay(c.enough, func() int {
					looks++
					return min(c.first+looks-1, c.last)
				})
				testkit.Equal(t, looks, c.looks, "looks")
			})
		})
	}
}
