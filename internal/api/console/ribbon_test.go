package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// P6: a ribbon has a row for each partition, with its owners one after another and nobody between them.
func TestARibbonHasWhoOwnedWhat(t *testing.T) {
	h := fixedHistory()
	tones := tonesOf(fixedOwnership().Instances, h.Spans)
	r := newRibbon(h, []string{"0", "1", "2"}, tones, noon)
	testkit.Equal(t, len(r.Rows), 3)
	testkit.Equal(t, fmt.Sprint(r.Rows[0].Spans), "[{1 40 934}]")
	testkit.Equal(t, fmt.Sprint(r.Rows[1].Spans), "[{3 40 496} {2 598 376}]")
	testkit.Equal(t, len(r.Rows[2].Spans), 0)
	testkit.Equal(t, r.Idle, "M40 0h934v10.8h-934zm0 13h934v10.8h-934zm0 13h934v10.8h-934zm0 13", "what is known ends now")
	h.From = *apiTime(5 * time.Minute)
	testkit.Equal(t, newRibbon(h, []string{"2"}, tones, noon).Idle, "M661 0h313v10.8h-313zm0 13", "of a group that is five minutes old")
	testkit.Equal(t, r.Label, "Owner of each of 3 partitions over 15 minutes: 3 owners. consumer-3 gone at 11:53:00 UTC. score circuit opened at 11:56:00 UTC.")
	testkit.Equal(t, fmt.Sprint(r.Owners), "[{consumer-1 1} {consumer-2 2} {consumer-3 3}]")
	h.Spans = nil
	testkit.That(t, newRibbon(h, []string{"0"}, tones, noon) == nil, "a ribbon of nothing")
}

// P6: a lane of many partitions has room for some, among them all that move.
func TestALongLaneIsShortened(t *testing.T) {
	l := lane{}
	for i := range 100 {
		l.Chips = append(l.Chips, chip{Partition: fmt.Sprint(i)})
	}
	l.Chips[90].Way, l.Chips[95].Way = "going", "coming"
	l.shorten(10)
	testkit.Equal(t, len(l.Chips), 10)
	testkit.Equal(t, l.Hidden, 90)
	testkit.Equal(t, l.Chips[8].Partition+" "+l.Chips[9].Partition, "90 95")
}

// P6: the ring of an owner runs out within a minute in which it was not seen, and turns amber and red.
func TestTheRingOfALeaseRunsOut(t *testing.T) {
	for renewed, want := range map[time.Duration]ring{
		0: {"44 44", "good"}, 15 * time.Second: {"33 44", "good"}, 40 * time.Second: {"15 44", "odd"}, 55 * time.Second: {"4 44", "bad"}, time.Hour: {"0 44", "bad"}, -time.Second: {"44 44", "good"},
	} {
		testkit.Equal(t, newRing(before(renewed), noon), want, renewed)
	}
}
