package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// ribbon is who owned which partition when.
type ribbon struct {
	Rows   []ribbonRow
	Owners []ribbonOwner
	Hours  []hour
	Marks  []mark
	// Height is of the whole picture, Bottom that of the last row's end, Thick of a row without its gap.
	Height, Bottom, Thick float64
	// Idle is what the rows are drawn upon, as far as it is known who owned what: what is left of it free, nobody owned.
	Idle       string
	Label      string // it in a sentence
	Incomplete bool
	Spans      []admin.OwnershipSpan // as a table
}

// ribbonRow is one partition; an empty label: there is no room for it.
type ribbonRow struct {
	Label    string
	Y, Below float64
	Spans    []ribbonSpan
}

type ribbonSpan struct {
	Tone     int
	X, Width float64
}

type ribbonOwner struct {
	Name string
	Tone int
}

const (
	ribbonLength = 15 * time.Minute
	// ribbonStep is how often it moves on.
	ribbonStep = 5 * time.Second
	// ribbonTable is how many spans its table has.
	ribbonTable = 20
)

var ribbonBox = box{Width: 980, Left: 40, Right: 979}

// newRibbon draws the partitions that a page shows.
func newRibbon(h admin.GroupHistory, partitions []string, tones map[string]int, now time.Time) *ribbon {
	if len(h.Spans) == 0 {
		return nil
	}
	tall := rowOf(len(partitions))
	r := &ribbon{Thick: tall - max(1, round(tall/6)), Incomplete: h.Incomplete}
	from := now.Truncate(ribbonStep).Add(ribbonStep - ribbonLength)
	begin, end := ribbonAt(h.From.Time, from), ribbonAt(h.To.Time, from)
	r.Idle = fmt.Sprintf("M%g 0", begin) + strings.Repeat(fmt.Sprintf("h%gv%gh%gzm0 %g", end-begin, r.Thick, begin-end, tall), len(partitions))
	for i, id := range partitions {
		row := ribbonRow{Y: float64(i) * tall, Below: float64(i)*tall + tall*.75, Spans: spansOf(h.Spans, id, from, tones)}
		if tall >= 11 || i%10 == 0 {
			row.Label = id
		}
		r.Rows = append(r.Rows, row)
	}
	r.Bottom = float64(len(partitions)) * tall
	r.Height = r.Bottom + 40
	r.Owners = ownersOf(h.Spans, tones)
	w := windows[0]
	r.Hours, r.Marks = hours("ribbon", from.Unix(), w, ribbonBox), arrange(marksOf(h.Changes), from.Unix(), w, ribbonBox)
	r.Label = r.sentence(len(partitions))
	r.Spans = newestSpans(h.Spans)
	return r
}

// rowOf is how tall a row is: many have to be thin.
func rowOf(partitions int) float64 {
	switch {
	case partitions <= 16:
		return 13
	case partitions <= 32:
		return 11
	}
	return 5
}

// spansOf are those of one partition, from left to right.
func spansOf(spans []admin.OwnershipSpan, partition string, from time.Time, tones map[string]int) (all []ribbonSpan) {
	for _, s := range spans {
		if s.Partition != partition || s.To.Before(from) {
			continue
		}
		x, end := ribbonAt(s.From.Time, from), ribbonAt(s.To.Time, from)
		all = append(all, ribbonSpan{Tone: tones[s.Owner], X: x, Width: max(end-x, 1)})
	}
	return all
}

// ribbonAt is where a time is across a ribbon that begins at from, in whole steps.
func ribbonAt(t, from time.Time) float64 {
	return math.Round(ribbonBox.across(min(max(float64(t.Sub(from))/float64(ribbonLength), 0), 1)))
}

func ownersOf(spans []admin.OwnershipSpan, tones map[string]int) (owners []ribbonOwner) {
	for _, s := range spans {
		if o := (ribbonOwner{s.Owner, tones[s.Owner]}); !slices.Contains(owners, o) {
			owners = append(owners, o)
		}
	}
	slices.SortFunc(owners, func(a, b ribbonOwner) int { return strings.Compare(a.Name, b.Name) })
	return owners
}

func (r *ribbon) sentence(partitions int) string {
	said := fmt.Sprintf("Owner of each of %s over 15 minutes: %s.", plural(partitions, "partition", "partitions"), plural(len(r.Owners), "owner", "owners"))
	for _, m := range r.Marks {
		said += fmt.Sprintf(" %s at %s.", m.Text, m.At.UTC().Format("15:04:05 MST"))
	}
	return said
}

// newestSpans are those that a table has room for, the newest first.
func newestSpans(spans []admin.OwnershipSpan) []admin.OwnershipSpan {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b admin.OwnershipSpan) int { return b.From.Compare(a.From.Time) })
	return spans[:min(len(spans), ribbonTable)]
}

// history asks who owned what. It is asked anew when an owner changes, and every five seconds.
func (v *visit) history(o admin.Ownership) admin.GroupHistory {
	var owners strings.Builder
	for _, p := range o.Partitions {
		fmt.Fprintf(&owners, "%q ", p.Owner)
	}
	h, err := remembered(v, "history "+owners.String(), ribbonStep, func() (admin.GroupHistory, error) {
		return v.api.GroupHistory(v.ctx, o.Hub, o.Group, ribbonLength.String())
	})
	if err != nil {
		return admin.GroupHistory{} // it is shown without
	}
	return h
}

// ring is what is left of the time within which an owner counts as alive, because it was seen. It is not the lease:
// how long that is each instance knows for itself, and says to nobody.
type ring struct{ Dash, Tone string }

const (
	// aliveFor is how long the yard takes the owner of a lease for alive that it does not renew, however long that is.
	aliveFor = time.Minute
	around   = 44 // a ring's circumference
)

func newRing(renewed time.Time, now time.Time) ring {
	left := min(max(1-float64(now.Sub(renewed))/float64(aliveFor), 0), 1)
	r := ring{Dash: coordinate(math.Round(left*around)) + " " + coordinate(around), Tone: "good"}
	switch {
	case left < .2:
		r.Tone = "bad"
	case left < .5:
		r.Tone = "odd"
	}
	return r
}
