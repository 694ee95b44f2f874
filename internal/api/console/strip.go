package console

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// strip is how many events came when, over all that a hub keeps. Each slot leads to its events.
type strip struct {
	Slots []slot
	Hours []hour
	// Here is where the list begins; negative: at none of them.
	Here  float64
	Label string // it in a sentence
}

// slot is one span of time.
type slot struct {
	X, Y, Height float64
	Link, Label  string
}

const (
	// stripSlots are wide enough to be hit by a finger.
	stripSlots = 36
	stripGood  = 30 * time.Second
	// The strip's box.
	stripWide, stripBase, stripHigh = 980, 44, 40
	stripStep                       = float64(stripWide) / stripSlots
)

// SlotWidth is that of a slot with what is between them.
func (strip) SlotWidth() float64 { return round(stripStep) }

// BarWidth is that of a slot's bar.
func (strip) BarWidth() float64 { return round(stripStep - 2) }

// strip asks when events came. Without an answer there is no picture.
func (v eventsVisit) strip(view eventsView) *strip {
	q := admin.DensityQuery{Partition: view.Partition, Buckets: stripSlots}
	density, err := remembered(v.visit, fmt.Sprint("density", q), stripGood, func() (admin.Density, error) { return v.api.Density(v.ctx, view.Name, q) })
	if err != nil {
		return nil
	}
	return newStrip(density, view)
}

// newStrip draws a hub's events over time, with the place where the list of a page begins.
func newStrip(d admin.Density, view eventsView) *strip {
	if d.Total == 0 || len(d.Buckets) == 0 {
		return nil
	}
	most := int64(1)
	for _, b := range d.Buckets {
		most = max(most, b.Events)
	}
	length := d.To.Sub(d.From)
	s := &strip{Here: -1, Label: fmt.Sprintf("%s from %s to %s, at most %s in %s: each bar leads to its events",
		plural(int(d.Total), "event", "events"), minute(d.From), minute(d.To), number(most), span(length/time.Duration(len(d.Buckets))))}
	for i, b := range d.Buckets {
		height := 0.
		if b.Events > 0 {
			height = round(max(stripHigh*float64(b.Events)/float64(most), 2))
		}
		s.Slots = append(s.Slots, slot{
			X: round(stripStep * float64(i)), Y: round(stripBase - height), Height: height, Label: plural(int(b.Events), "event", "events") + " from " + minute(b.From) + " on",
			Link: with(at("hubs", view.Name, "events"), "begin", "time", "when", b.From.UTC().Format(time.RFC3339), "partition", view.Partition),
		})
		if i%9 == 0 {
			s.Hours = append(s.Hours, hour{X: round(stripStep * float64(i)), Text: minute(b.From), At: b.From.Unix()})
		}
	}
	s.Here = hereOn(d.From, length, view)
	return s
}

// hereOn is where the list begins on the strip.
func hereOn(from time.Time, length time.Duration, view eventsView) float64 {
	switch view.Begin {
	case "newest":
		return stripWide
	case "oldest":
		return 0
	}
	begins, err := parseTime(view.When)
	if view.Begin == "number" && len(view.Events) > 0 {
		begins, err = view.Events[0].Enqueued, nil
	}
	if err != nil || length <= 0 {
		return -1
	}
	return round(min(max(float64(begins.Sub(from))/float64(length), 0), 1) * stripWide)
}

func minute(t time.Time) string { return t.UTC().Format("2 Jan 15:04 MST") }
