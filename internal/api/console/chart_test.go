package console

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

var none = math.NaN()

// V4: a line breaks where nothing was measured, and has a plane beneath each of its runs.
func TestALineBreaksWhereNothingWasMeasured(t *testing.T) {
	l := line{Max: 10, Box: box{Left: 10, Right: 50, Top: 0, Base: 20}, Values: []float64{0, 10, none, 5, 20}}
	pen, plane := l.draw()
	testkit.Equal(t, pen, "M10 20L10 20 20 0M40 10L40 10 50 0")
	testkit.Equal(t, plane, "M10 20L10 20 20 0V20H10ZM40 10L40 10 50 0V20H40Z")
}

// V4: a browser is told of what is new of a line, and of all of it only where it can have nothing of it.
func TestWhatIsNewOfALine(t *testing.T) {
	was := line{From: 100, Step: 5, Values: []float64{1, 2, none, 4}}
	for name, c := range map[string]struct {
		now  line
		want string
	}{
		"nothing":                       {line{From: 100, Step: 5, Values: []float64{1, 2, none, 4}}, "null"},
		"the last value":                {line{From: 100, Step: 5, Values: []float64{1, 2, none, 5}}, "[115,5]"},
		"one more":                      {line{From: 105, Step: 5, Values: []float64{2, none, 4, 6}}, "[120,6]"},
		"the last value, and one more":  {line{From: 105, Step: 5, Values: []float64{2, none, 5, 6}}, "[115,5,6]"},
		"a gap":                         {line{From: 105, Step: 5, Values: []float64{2, none, 4, none}}, "[120,null]"},
		"all, after a long while":       {line{From: 200, Step: 5, Values: []float64{1, 2, none, 4}}, "[200,1,2,null,4]"},
		"all, where time has gone back": {line{From: 50, Step: 5, Values: []float64{1, 2, 3, 4}}, "[50,1,2,3,4]"},
	} {
		news, err := json.Marshal(c.now.since(was))
		testkit.Must(t, err)
		testkit.Equal(t, string(news), c.want, name)
	}
	news, err := json.Marshal(was.since(line{}))
	testkit.Must(t, err)
	testkit.Equal(t, string(news), "[100,1,2,null,4]", "of a line that is not known")
}

// V4: of rates the mean is drawn, of what stands as it is the most, and nothing where nothing was measured.
func TestValuesAreDrawnInSteps(t *testing.T) {
	values := []*float64{new(1.), new(3.), nil, nil, new(5.), nil}
	s := admin.Series{Unit: "events/s", From: admin.Time{Time: time.Unix(100, 0)}, Step: 1, Values: values}
	testkit.Equal(t, drawn(resample(s, 100, 2, 3)), "[2,null,5]")
	s.Unit = "events"
	testkit.Equal(t, drawn(resample(s, 100, 2, 3)), "[3,null,5]")
	testkit.Equal(t, drawn(resample(s, 102, 2, 3)), "[null,5,null]", "later")
}

func drawn(values []float64) string {
	text, _ := json.Marshal(line{Step: 1, Values: values}.since(line{})[1:])
	return string(text)
}

// The largest level is a round number above all values.
func TestLevels(t *testing.T) {
	for most, want := range map[float64]float64{0: 4, 3: 4, 4: 4, 5: 6, 100: 100, 101: 120, 19_998: 20_000, 20_001: 24_000, 34: 40, 3900: 4000} {
		top, all := levels(most, halfBox, func(n float64) string { return levelText(n, "events/s") })
		testkit.Equal(t, top, want, "above", most)
		testkit.Equal(t, len(all), 5)
	}
	testkit.Equal(t, levelText(7500, ""), "7.5k")
	testkit.Equal(t, levelText(300, "s"), "5 min")
}

// V4: a chart says what it shows, has a table of it, and marks what happened where it did.
func TestAChartSaysWhatItShows(t *testing.T) {
	c := windows[0].chart(plot{id: "flow", title: "Events per second", box: wholeBox, marks: marksOf(fixedChanges())},
		[]admin.Series{fixedSeries("published", "events/s", 6667)}, noon)
	testkit.Equal(t, c.Label, "Events per second over 15 min: published 6,667/s now, at most 6,667/s")
	testkit.Equal(t, len(c.Rows), chartRows)
	testkit.Equal(t, fmt.Sprint(c.Rows[0]), "{flow-r0 now [6,667/s]}")
	testkit.That(t, math.IsNaN(c.Lines[0].Values[15]), "a value where nothing was measured")
	testkit.Equal(t, len(c.Marks), 2)
	testkit.Equal(t, c.Marks[1].Text, "score circuit opened")
	testkit.That(t, c.Marks[0].X < c.Marks[1].X && c.Marks[1].Shown && !c.Marks[1].Left, "marks: %+v", c.Marks)
	testkit.Equal(t, len(c.Hours), 3)
	testkit.That(t, windows[0].chart(plot{}, nil, noon) == nil, "a chart of nothing")
}
