package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// timeline is how a circuit came to be as it is: failures against the limit, its states, and how far the
// function is behind, under one another.
type timeline struct {
	About  string
	Levels []level
	// Pen and Plane are the failures within the breaker's time, LagPen and LagPlane the events behind.
	Pen, Plane, LagPen, LagPlane string
	// Limit is how high they may be; negative: it is not known.
	Limit     float64
	LimitText string
	Bands     []band
	Hours     []hour
	Marks     []mark
	Label     string // it in a sentence
	Changes   []admin.CircuitChange
}

// band is how long a circuit was in a state.
type band struct {
	X, Width    float64
	Tone, State string
}

// timelineStep is how often it moves on.
const timelineStep = 5 * time.Second

var (
	timelineBox = box{Width: 980, Left: 44, Right: 974, Top: 24, Base: 154}
	lagBox      = box{Width: 980, Left: 44, Right: 974, Top: 180, Base: 202}
)

// Box and bounds are for the template.
func (timeline) Box() box { return timelineBox }

// limitOf reads what opens a breaker: more than so many failures in a time.
func limitOf(breaker string) (failures int, within time.Duration) {
	count, length, _ := strings.Cut(breaker, "/")
	failures, _ = strconv.Atoi(count)
	if within, _ = time.ParseDuration(length); failures <= 0 || within < time.Second {
		return 0, 30 * time.Second
	}
	return failures, within
}

// born is whether a circuit's first change is its record, made at the first failure: it was closed before.
func born(changes []admin.CircuitChange) bool {
	return len(changes) > 0 && changes[0].Term == 0 && changes[0].State == "closed"
}

// newTimeline draws the last 15 minutes. Series are of the lag, where it is known.
func newTimeline(h admin.CircuitHistory, breaker string, series []admin.Series, now time.Time) *timeline {
	w, step := windows[0], int64(timelineStep.Seconds())
	from := (now.Unix()/step + 1 - chartPoints) * step
	limit, within := limitOf(breaker)
	sums := within15(h, from, within, now)
	t := &timeline{About: "failures within " + span(within), Limit: -1, Changes: slices.Clone(h.Changes)}
	slices.Reverse(t.Changes)
	top, levels := levels(max(peak(sums), 1.25*float64(limit)), timelineBox, func(n float64) string { return levelText(n, "") })
	t.Levels = levels
	if limit > 0 {
		t.Limit, t.LimitText = timelineBox.down(float64(limit)/top), fmt.Sprintf("opens above %d within %s", limit, span(within))
	}
	t.Pen, t.Plane = line{Max: top, Box: timelineBox, Values: sums}.draw()
	if lag := only(series, "lag"); len(lag) > 0 {
		values := resample(lag[0], from, step, chartPoints)
		t.LagPen, t.LagPlane = line{Max: max(peak(values), 1), Box: lagBox, Values: values}.draw()
	}
	t.Bands, t.Hours = bandsOf(h, from, w), hours("circuit", from, w, timelineBox)
	t.Marks = arrange(changeMarks(h.Changes), from, w, timelineBox)
	t.Label = t.sentence(h, sums, now)
	return t
}

// within15 is how many failures there were, at each step, within the breaker's time before it: as far as the
// circuit knows them. A call that failed is none, as long as its events are tried again.
func within15(h admin.CircuitHistory, from int64, within time.Duration, now time.Time) []float64 {
	step := int64(timelineStep.Seconds())
	known := now.Add(-within)
	if len(h.Seconds) > 0 && h.Seconds[0].At.Before(known) {
		known = h.Seconds[0].At
	}
	sums := make([]float64, chartPoints)
	for i := range sums {
		end := from + (int64(i)+1)*step
		if end <= known.Unix() {
			sums[i] = math.NaN()
			continue
		}
		for _, s := range h.Seconds {
			if at := s.At.Unix(); at < end && at >= end-int64(within.Seconds()) {
				sums[i] += float64(s.Failures)
			}
		}
	}
	return sums
}

// bandsOf are the states, as far as they are known. What comes before an opening was closed.
func bandsOf(h admin.CircuitHistory, from int64, w window) (bands []band) {
	across := func(t time.Time) float64 {
		return timelineBox.across(min(max(float64(t.Unix()-from)/w.length.Seconds(), 0), 1))
	}
	state, begins := h.State, timelineBox.Left
	if h.Heard != nil {
		begins = across(*h.Heard)
	}
	if len(h.Changes) > 0 {
		if state = ""; h.Changes[0].State == "open" || born(h.Changes) {
			state = "closed"
		}
		if born(h.Changes) {
			begins, h.Changes = timelineBox.Left, h.Changes[1:]
		}
	}
	add := func(until float64) {
		if width := round(until - begins); state != "" && width > 0 {
			bands = append(bands, band{begins, width, toneOfState(state), state})
		}
	}
	for _, c := range h.Changes {
		x := max(across(c.At), begins)
		add(x)
		state, begins = c.State, x
	}
	add(timelineBox.Right)
	return bands
}

func changeMarks(changes []admin.CircuitChange) (marks []mark) {
	for i, c := range changes {
		if i == 0 && born(changes) {
			continue
		}
		marks = append(marks, mark{ID: "c" + strconv.Itoa(i), Tone: toneOfState(c.State), Text: c.State, At: c.At})
	}
	return marks
}

func (t *timeline) sentence(h admin.CircuitHistory, sums []float64, now time.Time) string {
	said := fmt.Sprintf("%s: %s now, %s at most", t.About, number(int64(newestOf(sums))), number(int64(peak(sums))))
	if t.LimitText != "" {
		said += "; the circuit " + t.LimitText
	}
	if h.State != "" {
		said += "; it is " + h.State
	}
	if h.Since != nil {
		said += " for " + span(now.Sub(*h.Since).Truncate(time.Minute))
	}
	return said + "."
}

// timeline asks for a circuit's past. Without an answer there is no picture.
func (v *visit) timeline(r admin.CircuitRef, breaker string) *timeline {
	h, err := v.api.CircuitHistory(v.ctx, r)
	if err != nil {
		return nil
	}
	list, err := remembered(v, "timeline", timelineStep, func() (admin.SeriesList, error) {
		return v.api.Series(v.ctx, admin.SeriesQuery{Of: []string{"lag"}, Hub: r.Hub, Group: r.Group, Span: windows[0].length})
	})
	if err != nil {
		list = admin.SeriesList{} // it is drawn without
	}
	return newTimeline(h, breaker, list.Series, v.now)
}
