package console

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// chart is a picture of figures over a while, drawn here and gone on with by the script (live.js). All of
// it follows from its lines, its marks and its time.
type chart struct {
	ID           string // begins the ids of what is in it
	Title, About string
	Label        string // it in a sentence
	Step         int64  // of its values, in seconds
	Max          float64
	Box          box
	Lines        []line
	Levels       []level
	Hours        []hour
	Marks        []mark
	Rows         []chartRow
	Spans        []tab
}

// box is where lines are drawn within a picture that is Width wide. Base is the height of zero.
type box struct{ Width, Left, Right, Top, Base float64 }

// String is how the script reads it.
func (b box) String() string {
	return strings.Join([]string{coordinate(b.Left), coordinate(b.Right), coordinate(b.Top), coordinate(b.Base)}, " ")
}

// Height is that of the whole picture, with its axis.
func (b box) Height() float64 { return b.Base + 20 }

// across is the place of a part of the time, down that of a part of the largest value.
func (b box) across(part float64) float64 { return round(b.Left + part*(b.Right-b.Left)) }
func (b box) down(part float64) float64   { return round(b.Base - part*(b.Base-b.Top)) }

// The boxes of charts that have half of the page or all of it, and that of a figure's.
var (
	halfBox  = box{Width: 500, Left: 44, Right: 494, Top: 18, Base: 170}
	wholeBox = box{Width: 980, Left: 44, Right: 974, Top: 18, Base: 150}
	sparkBox = box{Width: 120, Right: 120, Top: 2, Base: 30}
)

// level is a height of a chart with its value, hour a place with its time.
type level struct {
	Y    float64
	Text string
}

type hour struct {
	ID, Text string
	X        float64
	At       int64 // in Unix seconds, of which the script makes the reader's own time
}

// mark is something that happened.
type mark struct {
	ID, Tone, Text string
	X              float64
	At             time.Time
	Left, Shown    bool // on which side its text stands, and whether there is room
}

// chartRow is one of the chart's table: how long ago, and the values of its lines.
type chartRow struct {
	ID, Ago string
	Values  []string
}

// line is one figure over time. Values are NaN where nothing was measured.
type line struct {
	ID, Name string
	Tone     string // of its colour: in, out, good, odd, bad or idle
	From     int64  // when the first value's step begins, in Unix seconds
	Step     int64
	Max      float64
	Box      box
	Values   []float64
}

// draw gives the line's path, and that of the plane beneath it. The script draws the same way.
func (l line) draw() (pen, plane string) {
	var lines, planes strings.Builder
	for i := 0; i < len(l.Values); i++ {
		if math.IsNaN(l.Values[i]) {
			continue
		}
		begin := i
		var run strings.Builder
		for ; i < len(l.Values) && !math.IsNaN(l.Values[i]); i++ {
			fmt.Fprintf(&run, " %s %s", coordinate(l.x(i)), coordinate(l.y(i)))
		}
		first := fmt.Sprintf("M%s %sL", coordinate(l.x(begin)), coordinate(l.y(begin)))
		points := first + strings.TrimPrefix(run.String(), " ")
		lines.WriteString(points)
		fmt.Fprintf(&planes, "%sV%sH%sZ", points, coordinate(l.Box.Base), coordinate(l.x(begin)))
	}
	return lines.String(), planes.String()
}

func (l line) x(i int) float64 { return l.Box.across(float64(i) / float64(max(len(l.Values)-1, 1))) }
func (l line) y(i int) float64 { return l.Box.down(min(l.Values[i]/l.Max, 1)) }

// since is what a browser has to be points that has the line as it was: when the first value is that is
// another now, and all from there on. nil: nothing.
func (l line) since(was line) []any {
	first, moved := 0, (l.From-was.From)/max(l.Step, 1)
	if l.Step == was.Step && moved >= 0 {
		for first < len(l.Values) && first+int(moved) < len(was.Values) && same(l.Values[first], was.Values[first+int(moved)]) {
			first++
		}
	}
	if first == len(l.Values) {
		return nil
	}
	points := []any{l.From + int64(first)*l.Step}
	for _, v := range l.Values[first:] {
		if math.IsNaN(v) {
			points = append(points, nil)
		} else {
			points = append(points, v)
		}
	}
	return points
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// round leaves as much of a place as can be seen.
func round(at float64) float64 { return math.Round(at*10) / 10 }

func coordinate(at float64) string { return strconv.FormatFloat(at, 'f', -1, 64) }

// significant leaves of a value as much as a chart can show, so that there is little to send.
func significant(v float64) float64 {
	if v == 0 || math.IsNaN(v) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	short, _ := strconv.ParseFloat(strconv.FormatFloat(math.Round(v/unit)*unit, 'g', 4, 64), 64)
	return short
}

// levels are five heights from zero up, of which the largest is above all values.
func levels(most float64, b box, text func(float64) string) (top float64, all []level) {
	step := levelStep(most / 4)
	for i := range 5 {
		all = append(all, level{b.down(float64(i) / 4), text(step * float64(i))})
	}
	return 4 * step, all
}

// levelStep is the least round number that is not below another, and at least 1.
func levelStep(least float64) float64 {
	if least <= 1 || math.IsNaN(least) || math.IsInf(least, 0) {
		return 1
	}
	decade := math.Pow(10, math.Floor(math.Log10(least)))
	for _, n := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if n*decade >= least {
			return n * decade
		}
	}
	return 10 * decade
}

// Line is a line of a chart. Its path is not sent again, but its points are.
func (c *cells) Line(l line) template.HTML {
	pen, plane, from := "", "", int64(0)
	if c.lines != nil {
		c.lines[l.ID] = l
	}
	if !c.bare {
		pen, plane = l.draw()
		from = l.From
	}
	return template.HTML(fmt.Sprintf(`<path class="fill f-%[1]s" d="%[2]s"/><path class="pen p-%[1]s" id="%[3]s" data-from="%[4]d" data-n="%[5]d" d="%[6]s"/>`,
		l.Tone, plane, template.HTMLEscapeString(l.ID), from, len(l.Values), pen))
}
