package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// bar is one of a chart. ID is that of its cells.
type bar struct {
	ID                   string
	X, Y, Height, Breath float64
	Label, Of, Tone      string
}

// Left is where a bar begins, Above where its label is.
func (b bar) Left() float64  { return round(b.X - b.Breath/2) }
func (b bar) Above() float64 { return b.Y - 6 }

// share is how the events of a hub are spread over its partitions: as bars, or as a heat map where there
// are too many for them.
type share struct {
	Bars []bar
	// Average is the height of an even share, AverageText how much that is.
	Average     float64
	AverageText string
	Heat        []heatLevel
	HeatHeight  int
	// Ranges lead to the pages of the table.
	Ranges []tab
	// Skew says which partition has much more than its share, and Skewed is that one; empty: none has.
	Skew, Skewed string
	// Busiest is the key by which it has; nil: no key stands out.
	Busiest *busiestKey
	// Label is it in a sentence.
	Label string
	// Flow: it is of what comes in, and not of what is kept.
	Flow bool
}

// heatLevel is all cells of one colour, as one path.
type heatLevel struct{ Class, Path string }

const (
	// maxBars is how many partitions have a bar, labelled of how many these have labels.
	maxBars  = 100
	labelled = 32
	// skewed is how many times its share a partition has that is named, of so many events at least.
	skewed     = 1.5
	skewOfMany = 100
	// The bars' box.
	barsLeft, barsRight, barsBase, barsHigh = 30, 976, 104, 78
)

// newShare draws what each partition has. One partition, or none with an event, is no picture.
func newShare(partitions []admin.Partition, total int64) *share {
	if len(partitions) < 2 || total == 0 {
		return nil
	}
	even := float64(total) / float64(len(partitions))
	most := slices.MaxFunc(partitions, func(a, b admin.Partition) int { return int(a.Events() - b.Events()) })
	s := &share{AverageText: short(int64(even))}
	if float64(most.Events()) >= skewed*even && total >= skewOfMany {
		s.Skewed, s.Skew = most.ID, fmt.Sprintf("%s has %s its share", most.ID, moreThan(float64(most.Events())/even))
	}
	s.Label = fmt.Sprintf("%s in %d partitions: %s each on average, at most %s, in partition %s", plural(int(total), "event", "events"), len(partitions), number(int64(even)), number(most.Events()), most.ID)
	if len(partitions) > maxBars {
		s.Heat, s.HeatHeight = heatOf(partitions, even)
		return s
	}
	s.Bars = barsOf(partitions, most, s.Skew != "")
	s.Average = round(barsBase - even*barsHigh/float64(most.Events()))
	return s
}

// newFlowShare draws what each partition gets in a second, by the events of the last minute. nil: nothing came, or it
// is not known of all partitions.
func newFlowShare(partitions []admin.Partition, rates map[string]float64) *share {
	if len(rates) < len(partitions) {
		return nil
	}
	came, total := make([]admin.Partition, len(partitions)), int64(0)
	for i, p := range partitions {
		n := int64(math.Round(rates[p.ID] * 60))
		came[i], total = admin.Partition{ID: p.ID, Last: n - 1, Empty: n == 0}, total+n
	}
	s := newShare(came, total)
	if s == nil || len(s.Bars) == 0 {
		return nil
	}
	s.Flow, s.Skew = true, strings.Replace(s.Skew, " has ", " gets ", 1)
	s.Label = s.Label + "; of the last minute"
	for i := range s.Bars {
		if s.Bars[i].Label != "" {
			s.Bars[i].Label = rate(rates[came[i].ID])
		}
	}
	return s
}

// moreThan says by how much: in percent, or how many times, where that is easier to grasp.
func moreThan(times float64) string {
	if times >= 3 {
		return fmt.Sprintf("%.0f times", times)
	}
	return fmt.Sprintf("%.0f %% more than", 100*(times-1))
}

func barsOf(partitions []admin.Partition, most admin.Partition, skewed bool) (bars []bar) {
	step := (barsRight - barsLeft) / float64(len(partitions))
	for i, p := range partitions {
		height := round(float64(p.Events()) * barsHigh / float64(most.Events()))
		b := bar{ID: "bar" + p.ID, X: round(barsLeft + step*(float64(i)+.5)), Y: round(barsBase - height), Height: height, Breath: round(min(step*.6, 28)), Tone: "k-in-soft"}
		if len(partitions) <= labelled {
			b.Label = short(p.Events())
		}
		if len(partitions) <= labelled || i%10 == 0 {
			b.Of = p.ID
		}
		if skewed && p.ID == most.ID {
			b.Tone = "k-odd"
		}
		bars = append(bars, b)
	}
	return bars
}

// The heat map has so many cells in a row, each so large with what is between them.
const (
	heatColumns        = 64
	heatWide, heatTall = 15.2, 11
	cellWide, cellTall = 13, 9
)

// heatBounds are between the colours, in shares. None is near one, where most partitions are.
var heatBounds = []float64{.5, 1.25, skewed}

// heatOf gives each partition a colour by how much of an even share it has.
func heatOf(partitions []admin.Partition, even float64) (levels []heatLevel, height int) {
	levels = []heatLevel{{Class: "h0"}, {Class: "h1"}, {Class: "h2"}, {Class: "h3"}}
	for i, p := range partitions {
		level := 0
		for _, bound := range heatBounds {
			if float64(p.Events()) >= bound*even {
				level++
			}
		}
		levels[level].Path += fmt.Sprintf("M%s %dh%dv%dh-%dz", coordinate(round(float64(i%heatColumns)*heatWide)), i/heatColumns*heatTall, cellWide, cellTall, cellWide)
	}
	rows := (len(partitions) + heatColumns - 1) / heatColumns
	return slices.DeleteFunc(levels, func(l heatLevel) bool { return l.Path == "" }), rows * heatTall
}

// ranges lead to each page of a long list.
func ranges(v *visit, p pager) (all []tab) {
	for from := 0; from < p.All && p.All > rowsOfPage; from += rowsOfPage {
		query := v.r.URL.Query()
		query.Set("page", strconv.Itoa(from/rowsOfPage))
		all = append(all, tab{Name: strconv.Itoa(from), Link: v.r.URL.EscapedPath() + "?" + query.Encode() + "#rows", Here: from == p.From})
	}
	return all
}

// short writes a number in few characters.
func short(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return number(n)
}
