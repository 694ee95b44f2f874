package console

import (
	"time"

	"github.com/eventyard/eventyard/admin"
)

// journeyFunction is what a function has done with an event.
type journeyFunction struct {
	admin.JourneyFunction
	Tone       string
	Head, Rest string
	Called     []journeyCall
	// Link is the function's page, Put that of what it has put away; empty: it has not put the event away.
	Link, Put string
}

// journeyCall is one call.
type journeyCall struct {
	admin.JourneyCall
	Tone string
}

// callTones are the colours of what calls come to; what is not here has none.
var callTones = map[string]string{"done": "good", "skipped": "good", "failed": "bad", "poison": "bad", "unavailable": "bad"}

func newJourneyFunction(f admin.JourneyFunction) journeyFunction {
	one := journeyFunction{JourneyFunction: f, Link: at("functions", f.Function), Tone: map[string]string{"handled": "good", "poison": "bad", "before": "odd"}[f.State]}
	one.Head, one.Rest = headline(f.Summary)
	for _, c := range f.Calls {
		one.Called = append(one.Called, journeyCall{c, callTones[c.Outcome]})
	}
	if f.State == "poison" {
		one.Put = at("functions", f.Function, "poison")
	}
	return one
}

// function draws calls, and then where the event is.
func (d drawing) function(f *journeyFunction, y float64) journeyRow {
	r := journeyRow{Name: shorten(f.Function), Y: y}
	at, labelled := axisLeft, axisLeft-labelWidth
	for i, c := range f.Called {
		took, _ := time.ParseDuration(c.Took)
		x, tone, class := d.at(c.Time.Add(took)), orWord(c.Tone, "idle"), "way-wait"
		if i == 0 && c.Tone != "" {
			class = "way-" + c.Tone
		}
		r.Lines, r.Marks = append(r.Lines, wayLine{class, at, x}), append(r.Marks, wayMark{"dot", "k-" + tone, x})
		if at = x; c.Tone == "bad" && x-labelled >= labelWidth {
			r.Words = append(r.Words, wayWord{"mid bad-t", c.Outcome, x, y - 12})
			labelled = x
		}
	}
	switch p := f.Poison; {
	case p != nil && p.Poisoned != nil:
		x := d.at(*p.Poisoned)
		r.Lines, r.Marks = append(r.Lines, wayLine{"way-bad", at, x}), append(r.Marks, wayMark{"square", "k-bad", x})
		r.beside(x, "bad-t", "put away as poison")
	case f.State == "before" && len(f.Called) > 0 && f.Called[len(f.Called)-1].Tone != "good":
		now := d.axis.x(d.age)
		r.Lines, r.Marks = append(r.Lines, wayLine{"way-wait", at, now}), append(r.Marks, wayMark{"ring", "ringed", now})
		r.beside(now, "ink", "called again")
	case len(f.Called) > 0:
		last := f.Called[len(f.Called)-1]
		r.beside(at, "", last.Outcome+" in "+took(last.Took))
	}
	return r
}

// drawn tells whether there is anything of a function in the picture.
func (f *journeyFunction) drawn() bool {
	return len(f.Called) > 0 || f.Poison != nil && f.Poison.Poisoned != nil
}
