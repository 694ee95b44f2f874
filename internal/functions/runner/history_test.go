package runner

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/functions/notify"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

var opened = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// F5: the failures that opened a circuit are told by second and by instance, however long ago.
func TestFailuresBySecond(t *testing.T) {
	tallies := map[string]breaker.Tally{
		"a": {Term: 4, Total: 9, Buckets: []breaker.Bucket{{Age: 2500 * time.Millisecond, Count: 3}, {Age: 100 * time.Millisecond, Count: 2}}},
		"b": {Term: 4, Total: 1, Buckets: []breaker.Bucket{{Age: 2100 * time.Millisecond, Count: 1}}},
		"c": {Term: 2, Total: 7, Buckets: []breaker.Bucket{{Age: time.Second, Count: 7}}},
	}
	open := breaker.Record{State: breaker.Open, Term: 5, Opened: opened}
	seconds, by := bySecond(open, tallies, opened.Add(time.Hour))
	testkit.Slices(t, seconds, []FailuresAt{{opened.Add(-3 * time.Second), 4}, {opened.Add(-time.Second), 2}})
	testkit.Deep(t, by, map[string]int{"a": 5, "b": 1})
	seconds, by = bySecond(breaker.Record{State: breaker.Closed, Term: 6}, tallies, opened)
	testkit.That(t, len(seconds) == 0 && len(by) == 0, "after it was closed: %v, %v", seconds, by)
	seconds, _ = bySecond(breaker.Record{State: breaker.Closed, Term: 4}, tallies, opened)
	testkit.Equal(t, len(seconds), 2, "while it is closed")
}

// F6: changes are remembered once each, the newest of them.
func TestChangesAreRemembered(t *testing.T) {
	var c changes
	group := processor.Group{Hub: "Orders", Group: "billing"}
	for term := range int64(maxChanges + 10) {
		for range 2 {
			c.add(notify.Circuit{Group: group, Function: "f", Record: breaker.Record{Term: term, State: breaker.Open}}, opened)
		}
	}
	since, all := c.of(keyFor(processor.Group{Hub: "orders", Group: "billing"}, "f"))
	testkit.That(t, since.Equal(opened) && len(all) == maxChanges && all[0].Term == 10 && all[0].Since.Equal(opened), "%v, %d: %+v", since, len(all), all[0])
	_, none := c.of(keyFor(group, "g"))
	testkit.Equal(t, len(none), 0)
}
