package retry

import (
	"slices"
	"time"
)

// ladder is the waits that there is a log for. The index of a wait is the number of its log on
// disk: changing this table moves what waits into logs of another wait, so a change needs a
// migration.
var ladder = [...]time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second,
	10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second, 45 * time.Second,
	1 * time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 7 * time.Minute,
	10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, 45 * time.Minute,
	1 * time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour,
	6 * time.Hour, 8 * time.Hour, 12 * time.Hour, 18 * time.Hour, 24 * time.Hour,
}

// Ladder is the waits that retry logs exist for: at most 40, rising, from 100 ms to 24 h, with
// every wait of G5 among them, and 1, 2, 5 s … for schedules of one's own. The slice is the
// caller's.
func Ladder() []time.Duration { return slices.Clone(ladder[:]) }

// Step gives the index in Ladder of the least wait that is not less; the last for more.
func Step(wait time.Duration) int {
	position, _ := slices.BinarySearch(ladder[:], wait)
	return min(position, len(ladder)-1)
}
