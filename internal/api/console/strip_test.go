package console

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// V4: a strip has a bar for each span of time that leads to its events, and shows where the list begins.
func TestAStripLeadsToEvents(t *testing.T) {
	view := eventsView{Hub: admin.Hub{Name: "sensors"}, Begin: "time", When: before(30 * time.Minute).Format(time.RFC3339), Partition: "1"}
	s := newStrip(fixedDensity(), view)
	testkit.Equal(t, len(s.Slots), stripSlots)
	testkit.Equal(t, s.Slots[35], slot{X: 952.8, Y: 4, Height: 40, Label: "17 events from 31 Jan 11:58 UTC on", Link: base + "hubs/sensors/events?begin=time&partition=1&when=2026-01-31T11%3A58%3A20Z"})
	testkit.Equal(t, s.Slots[0].Height, 0.)
	testkit.Equal(t, s.Slots[19].Height, 2.4, "of one event")
	testkit.Equal(t, s.Here, 490.)
	testkit.Equal(t, s.Label, "153 events from 31 Jan 11:00 UTC to 31 Jan 12:00 UTC, at most 17 in 1 min 40 s: each bar leads to its events")
	for begin, here := range map[string]float64{"newest": stripWide, "oldest": 0, "number": -1} {
		view := eventsView{Begin: begin}
		testkit.Equal(t, newStrip(fixedDensity(), view).Here, here, begin)
	}
	testkit.That(t, newStrip(admin.Density{}, view) == nil, "a strip of nothing")
}
