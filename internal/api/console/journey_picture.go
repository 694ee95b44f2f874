package console

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// The picture of a journey: a row for each subscription and each function that was called, and time since the event was published along
// the axis, in powers of ten, so that an answer after 40 ms and a last try after a day are both seen.

const (
	axisLeft, axisRight = 160., 955.
	wayTop, wayHeight   = 46., 46.
	// rowsDrawn is how many subscriptions are drawn; the list beneath has all.
	rowsDrawn = 12
	// labelWidth is how far apart the answers of tries are written at least.
	labelWidth = 34.
	nameRunes  = 20
)

// journeyPicture is drawn by the template as it is.
type journeyPicture struct {
	Height, Foot, Deep float64 // Deep is how deep the shade of what comes after now is
	Ticks              []tick
	Now, Later         float64 // where now is, and how wide what comes after is
	Age                string
	Rows               []journeyRow
	Said               string
}

type tick struct {
	X     float64
	Label string
}

// journeyRow is the way to one subscription or function: lines, marks on them, and words.
type journeyRow struct {
	Name  string
	Y     float64
	Lines []wayLine
	Marks []wayMark
	Words []wayWord
}

type wayLine struct {
	Class string
	From  float64
	To    float64
}

// wayMark is a dot, a square or a ring.
type wayMark struct {
	Shape, Class string
	X            float64
}

type wayWord struct {
	Class, Text string
	X, Y        float64
}

// axis turns times since publication into places.
type axis struct{ perDecade float64 }

func newAxis(longest time.Duration) axis {
	return axis{(axisRight - axisLeft) / math.Log10(milliseconds(max(longest, 24*time.Hour)))}
}

func milliseconds(d time.Duration) float64 { return max(float64(d)/float64(time.Millisecond), 1) }

func (a axis) x(d time.Duration) float64 {
	return math.Round(10*(axisLeft+a.perDecade*math.Log10(milliseconds(d)))) / 10
}

// ticks are powers of ten, and what people count longer times in.
func (a axis) ticks(longest time.Duration) (all []tick) {
	for _, t := range []struct {
		at    time.Duration
		label string
	}{
		{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}, {10 * time.Second, "10 s"},
		{time.Minute, "1 min"}, {10 * time.Minute, "10 min"}, {time.Hour, "1 h"}, {10 * time.Hour, "10 h"}, {24 * time.Hour, "24 h"}, {7 * 24 * time.Hour, "7 days"},
	} {
		if t.at <= longest {
			all = append(all, tick{a.x(t.at), t.label})
		}
	}
	return all
}

// drawJourney draws the first of the ways. The age of the event is written coarsely, so that the
// picture stays as it is while nothing happens.
func drawJourney(e *journeyEvent, now time.Time) journeyPicture {
	ways := e.Ways[:min(len(e.Ways), rowsDrawn)]
	age := coarse(now.Sub(e.Published))
	longest := max(age, 24*time.Hour)
	for _, w := range ways {
		if w.Expires != nil && w.Tone == "odd" {
			longest = max(longest, w.Expires.Sub(e.Published))
		}
	}
	d := drawing{axis: newAxis(longest), published: e.Published, age: age}
	p := journeyPicture{Ticks: d.axis.ticks(longest), Now: d.axis.x(age), Age: span(age), Rows: []journeyRow{d.publisher(e)}}
	var said []string
	for i := range ways {
		p.Rows = append(p.Rows, d.way(&ways[i], wayTop+wayHeight*float64(i+1)))
		said = append(said, ways[i].Subscription+": "+ways[i].Summary)
	}
	for i := range e.Calls {
		if f := &e.Calls[i]; f.drawn() && len(p.Rows) <= rowsDrawn {
			p.Rows = append(p.Rows, d.function(f, wayTop+wayHeight*float64(len(p.Rows))))
			said = append(said, "function "+f.Function+": "+f.Summary)
		}
	}
	p.Height = wayTop + wayHeight*float64(len(p.Rows)) + 4
	p.Foot, p.Deep, p.Later = p.Height-22, p.Height-40, math.Round(10*(980-p.Now))/10
	p.Said = "Stored, then " + strings.Join(said, "; ")
	if len(said) == 0 {
		p.Said = "Stored, and sent to nobody"
	}
	return p
}

// coarse leaves two figures of a duration.
func coarse(d time.Duration) time.Duration {
	step := time.Millisecond
	for d/step >= 100 {
		step *= 10
	}
	return max(d, 0).Truncate(step)
}

// drawing is what all rows of a picture share.
type drawing struct {
	axis      axis
	published time.Time
	age       time.Duration
}

func (d drawing) at(t time.Time) float64 { return d.axis.x(t.Sub(d.published)) }

func (d drawing) publisher(e *journeyEvent) journeyRow {
	return journeyRow{
		Name: "publisher", Y: wayTop, Marks: []wayMark{{"dot", "k-good", axisLeft}},
		Words: []wayWord{{"", "stored as " + shorten(e.Source) + " " + number(e.Sequence), axisLeft + 12, wayTop + 4}},
	}
}

// way draws tries, and then where the event is.
func (d drawing) way(w *journeyWay, y float64) journeyRow {
	r := journeyRow{Name: shorten(w.Subscription), Y: y}
	at, labelled := axisLeft, axisLeft-labelWidth
	for i, t := range w.Tried {
		took, _ := time.ParseDuration(t.Took)
		x := d.at(t.Time.Add(took))
		class := "way-" + t.Tone
		if i > 0 {
			class = "way-wait"
		}
		r.Lines, r.Marks = append(r.Lines, wayLine{class, at, x}), append(r.Marks, wayMark{"dot", "k-" + t.Tone, x})
		if at = x; t.Tone == "bad" && x-labelled >= labelWidth {
			r.Words = append(r.Words, wayWord{"mid bad-t", answerOf(t.JourneyTry), x, y - 12})
			labelled = x
		}
	}
	switch {
	case w.Tone == "odd":
		d.waiting(w, &r, at)
	case w.State == "dead-lettered" && w.DeadLetter != nil:
		x := d.at(w.DeadLetter.Died)
		r.Lines, r.Marks = append(r.Lines, wayLine{"way-bad", at, x}), append(r.Marks, wayMark{"square", "k-bad", x})
		r.beside(x, "bad-t", "dead letter "+number(w.DeadLetter.Number))
	case len(w.Tried) > 0:
		last := w.Tried[len(w.Tried)-1]
		r.beside(at, "", answerOf(last.JourneyTry)+" in "+took(last.Took))
	case w.Tone == "good":
		r.Marks = append(r.Marks, wayMark{"dot", "k-good", at})
		r.beside(at, "", "delivered; when is forgotten")
	default:
		r.Marks = append(r.Marks, wayMark{"dot", "k-idle", at})
		r.beside(at, "", idleWords(w))
	}
	return r
}

// waiting draws an event that is still on its way: until now, when it was due or is, and when it is
// given up.
func (d drawing) waiting(w *journeyWay, r *journeyRow, at float64) {
	now := d.axis.x(d.age)
	next, words := now, w.State
	if w.Due != nil {
		if due := d.at(*w.Due); due < now {
			r.Marks = append(r.Marks, wayMark{"square", "k-odd", due})
		} else {
			next = due
		}
		words = "try " + strconv.Itoa(w.Attempts+1)
	}
	if e := w.Endpoint; e != nil && e.Until != nil && w.Probe != "" {
		next, words = max(next, d.at(*e.Until)), "probe, then "+words
	}
	r.Lines = append(r.Lines, wayLine{"way-wait", at, next})
	r.Marks = append(r.Marks, wayMark{"ring", "ringed", next})
	r.beside(next, "ink", words)
	if w.Expires != nil {
		x := d.at(*w.Expires)
		r.Marks = append(r.Marks, wayMark{"limit", "limit", x})
		r.Words = append(r.Words, wayWord{"end bad-t", "given up", x + 10, r.Y - 16})
	}
}

// beside writes words to the right of a place, or to the left where the picture ends.
func (r *journeyRow) beside(x float64, class, text string) {
	if x > 760 {
		r.Words = append(r.Words, wayWord{strings.TrimSpace("end " + class), text, x - 12, r.Y + 18})
		return
	}
	r.Words = append(r.Words, wayWord{class, text, x + 12, r.Y + 4})
}

func answerOf(t admin.JourneyTry) string {
	if t.Status != 0 {
		return strconv.Itoa(t.Status)
	}
	return t.Outcome
}

// idleWords say why nothing was ever sent.
func idleWords(w *journeyWay) string {
	switch w.State {
	case "unmatched":
		for _, t := range w.Tests {
			if !t.Passes {
				return "does not match: " + cutText(t.Want, 60) + ", and it is " + cutText(t.Met, 30)
			}
		}
		return "does not match"
	case "early":
		return "was published before this subscription began"
	case "late":
		return "was published after this subscription expired"
	}
	return "not known"
}

func shorten(name string) string { return cutText(name, nameRunes) }

func cutText(text string, most int) string {
	runes := []rune(pictures(text))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}
