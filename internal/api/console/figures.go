package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// window is how far back the charts of a page reach, by the word that is in its address.
type window struct {
	word, name string
	length     time.Duration
	// every is how far apart its hours are, remembered how long what was asked for it is good.
	every, remembered time.Duration
}

// windows are those that can be chosen, the first by default.
var windows = []window{
	{"15m", "15 min", 15 * time.Minute, 5 * time.Minute, 0},
	{"2h", "2 h", 2 * time.Hour, 30 * time.Minute, 5 * time.Second},
	{"24h", "24 h", 24 * time.Hour, 6 * time.Hour, 30 * time.Second},
}

// The points of a chart and of a figure's line, and the rows of a chart's table.
const (
	chartPoints = 180
	sparkPoints = 60
	chartRows   = 15
)

// toneOfFigure is the colour of each figure, nameOfFigure what it is called where that is another word.
var (
	toneOfFigure = map[string]string{
		"published": "in", "read": "out", "delivered": "out", "calls": "out", "failed": "bad", "failed-calls": "bad", "waiting": "odd", "lag": "idle", "lag-seconds": "in",
	}
	nameOfFigure = map[string]string{"failed-calls": "failed", "lag-seconds": "behind", "lag": "events behind"}
)

// window is the one that is asked for.
func (v *visit) window() window {
	asked := v.r.URL.Query().Get("span")
	return windows[max(slices.IndexFunc(windows, func(w window) bool { return w.word == asked }), 0)]
}

// spans lead to the same page with other windows.
func (v *visit) spans() (all []tab) {
	here := v.window()
	for _, w := range windows {
		query := v.r.URL.Query()
		query.Del("done")
		query.Set("span", w.word)
		all = append(all, tab{Name: w.name, Link: v.r.URL.EscapedPath() + "?" + query.Encode(), Here: w.word == here.word})
	}
	return all
}

// series asks for figures over the page's window. Where they are not known, or not this reader's to see,
// there are none: a page is shown without them.
func (v *visit) series(q admin.SeriesQuery) []admin.Series {
	w := v.window()
	q.Span = w.length
	list, err := remembered(v, fmt.Sprint("series", q), w.remembered, func() (admin.SeriesList, error) { return v.api.Series(v.ctx, q) })
	if err != nil {
		return nil
	}
	v.silent.add(list.Missing...)
	return list.Series
}

// plot is what a chart is made of besides its figures. An empty tone: each has its own.
type plot struct {
	id, title, about, tone string
	box                    box
	points                 int
	marks                  []mark
}

// chart draws series up to now. nil: there is nothing to be drawn.
func (w window) chart(p plot, series []admin.Series, now time.Time) *chart {
	if len(series) == 0 {
		return nil
	}
	points := cmp.Or(p.points, chartPoints)
	c := &chart{ID: p.id, Title: p.title, About: p.about, Box: p.box, Step: int64(w.length.Seconds()) / int64(points)}
	from := (now.Unix()/c.Step + 1 - int64(points)) * c.Step
	most := 0.
	for _, s := range series {
		l := line{ID: p.id + "-" + s.Of, Name: cmp.Or(nameOfFigure[s.Of], s.Of), Tone: cmp.Or(p.tone, toneOfFigure[s.Of], "in"), From: from, Step: c.Step, Box: p.box, Values: resample(s, from, c.Step, points)}
		most = max(most, peak(l.Values))
		c.Lines = append(c.Lines, l)
	}
	unit := series[0].Unit
	c.Max, c.Levels = levels(most, p.box, func(n float64) string { return levelText(n, unit) })
	for i := range c.Lines {
		c.Lines[i].Max = c.Max
	}
	c.Label = c.sentence(w, unit)
	c.Hours, c.Marks = hours(p.id, from, w, p.box), arrange(p.marks, from, w, p.box)
	c.Rows = tableOf(c.Lines, p.id, w, unit)
	return c
}

// flow is the chart of what a thing does in a second, which its page has. nil: it is not known.
func (v *visit) flow(series []admin.Series, marks []mark) *chart {
	if len(series) == 0 {
		return nil
	}
	title := "Events per second"
	if strings.HasPrefix(series[0].Unit, "calls") {
		title = "Calls per second"
	}
	c := v.window().chart(plot{id: "flow", title: title, box: wholeBox, marks: marks}, series, v.now)
	c.Spans = v.spans()
	return c
}

// lately is what series have come to in the last ten seconds, by figure.
func lately(series []admin.Series, now time.Time) map[string]*float64 {
	values := map[string]*float64{}
	step := int64(rateSpan.Seconds())
	for _, s := range series {
		if step = max(step, int64(s.Step)); len(s.Values) == 0 {
			continue
		}
		if v := resample(s, now.Unix()-step, step, 1)[0]; !math.IsNaN(v) {
			values[s.Of] = &v
		}
	}
	return values
}

// spark is the line of one figure, without axes.
func (w window) spark(id, tone string, series []admin.Series, of string, now time.Time) *chart {
	i := slices.IndexFunc(series, func(s admin.Series) bool { return s.Of == of })
	if i < 0 {
		return nil
	}
	c := w.chart(plot{id: id, title: series[i].Of, box: sparkBox, points: sparkPoints, tone: tone}, series[i:i+1], now)
	c.Levels, c.Hours, c.Rows = nil, nil, nil
	return c
}

// resample makes as many values as are drawn of those that were measured: the mean of rates, and the
// largest of what stands as it is.
func resample(s admin.Series, from, step int64, points int) []float64 {
	sums, counts := make([]float64, points), make([]int, points)
	gauge := !strings.HasSuffix(s.Unit, "/s")
	for i, v := range s.Values {
		at := s.From.Unix() + int64(i)*int64(s.Step) - from
		if v == nil || at < 0 || at/step >= int64(points) {
			continue
		}
		n := at / step
		if counts[n]++; gauge {
			sums[n] = max(sums[n], *v)
		} else {
			sums[n] += *v
		}
	}
	for n, count := range counts {
		switch {
		case count == 0:
			sums[n] = math.NaN()
		case gauge:
			sums[n] = significant(sums[n])
		default:
			sums[n] = significant(sums[n] / float64(count))
		}
	}
	return sums
}

// peak is the largest value, newestOf the last that was measured; NaN: none was.
func peak(values []float64) float64 {
	most := 0.
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}

func newestOf(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// sentence is the chart as it is read aloud.
func (c *chart) sentence(w window, unit string) string {
	said := make([]string, len(c.Lines))
	for i, l := range c.Lines {
		said[i] = fmt.Sprintf("%s %s now, at most %s", l.Name, valueIn(newestOf(l.Values), unit), valueIn(peak(l.Values), unit))
	}
	return c.Title + " over " + w.name + ": " + strings.Join(said, "; ")
}

// hours are the round times within a window. There are always as many of them, so that they can move.
func hours(id string, from int64, w window, b box) (all []hour) {
	every, length := int64(w.every.Seconds()), w.length.Seconds()
	n := int(w.length / w.every)
	for i, at := 0, (from/every+1)*every; i < n; i, at = i+1, at+every {
		x := b.across(float64(at-from) / length)
		all = append(all, hour{ID: fmt.Sprintf("%s-h%d", id, i), Text: time.Unix(at, 0).UTC().Format("15:04"), X: x, At: at})
	}
	return all
}

// markRoom is how wide the text of a mark may be.
const markRoom = 140

// arrange puts marks where they happened, and leaves out texts that would stand in one another.
func arrange(marks []mark, from int64, w window, b box) (all []mark) {
	taken := b.Left
	for _, m := range marks {
		part := float64(m.At.Unix()-from) / w.length.Seconds()
		if part < 0 || part > 1 {
			continue
		}
		m.X = b.across(part)
		if m.Left = m.X+markRoom > b.Right; m.Left {
			m.Shown = m.X-markRoom >= taken
		} else {
			m.Shown = m.X >= taken
		}
		if m.Shown && m.Left {
			taken = m.X
		} else if m.Shown {
			taken = m.X + markRoom
		}
		all = append(all, m)
	}
	return all
}

// tableOf has the chart's figures by rounds of time, the newest first.
func tableOf(lines []line, id string, w window, unit string) (rows []chartRow) {
	each := w.length / chartRows
	perRow := len(lines[0].Values) / chartRows
	for i := range chartRows {
		row := chartRow{ID: fmt.Sprintf("%s-r%d", id, i), Ago: "now"}
		if i > 0 {
			row.Ago = strings.TrimSuffix(strings.TrimSuffix(span(time.Duration(i)*each), " 0 s"), " 0 min") + " ago"
		}
		for _, l := range lines {
			end := len(l.Values) - i*perRow
			row.Values = append(row.Values, valueIn(mean(l.Values[end-perRow:end]), unit))
		}
		rows = append(rows, row)
	}
	return rows
}

func mean(values []float64) float64 {
	sum, n := 0., 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n) // NaN of none
}

// levelText is a value at an axis.
func levelText(n float64, unit string) string {
	switch {
	case unit == "s" && n >= 120:
		return strconv.FormatFloat(round(n/60), 'f', -1, 64) + " min"
	case unit == "s" && n > 0:
		return strconv.FormatFloat(n, 'f', -1, 64) + " s"
	case n >= 1_000_000:
		return strconv.FormatFloat(round(n/1_000_000), 'f', -1, 64) + "M"
	case n >= 1000:
		return strconv.FormatFloat(round(n/1000), 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// valueIn is a value in its unit.
func valueIn(n float64, unit string) string {
	switch {
	case math.IsNaN(n):
		return "–"
	case unit == "s":
		return span(seconds(n))
	case strings.HasSuffix(unit, "/s"):
		return rate(n) + "/s"
	}
	return number(int64(n))
}

// rate is how many a second, with what counts of a few.
func rate(n float64) string {
	if n > 0 && n < 10 {
		return strconv.FormatFloat(max(round(n), .1), 'f', -1, 64)
	}
	return number(int64(math.Round(n)))
}

// rateOf is a rate that may not be known.
func rateOf(n *float64) string {
	if n == nil {
		return "–"
	}
	return rate(*n)
}
