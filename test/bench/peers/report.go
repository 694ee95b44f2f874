package main

import (
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// report is what is printed in the end.
type report struct {
	about  []string
	ratios []ratio
	tables []measure.Table
	absent []string // who could not be had, and why; in the order in which that was found
}

// ratio is a figure of the yard over another server's, one for each round.
type ratio struct {
	what   string
	values measure.Series
	// lowWins: less is better, as with latency and memory.
	lowWins bool
	// ceiling: the other is no server that anybody could use, so that less than it is no defeat.
	ceiling bool
	goal    goal
}

// bar is what ratios of a kind are to reach; the zero value: nothing.
type bar struct {
	bound float64
	// orCeiling: where a server that throws away does not reach it either, so that the client leaves no room, the yard
	// is measured by that server.
	orCeiling bool
}

// ceilingShare is what is to be reached of a server that throws away.
const ceilingShare = 0.9

// goal is a bar, and what it needs to be judged by the ceiling: that of a server that throws away over the other one,
// and the yard over a server that throws away.
type goal struct {
	bar
	room, used measure.Series
}

// noRoom: the ceiling is below the bar, and so is the yard.
func (r ratio) noRoom() bool {
	g := r.goal
	return g.orCeiling && len(g.room) > 0 && len(g.used) > 0 && g.room.Median() < g.bound && r.values.Median() < g.bound
}

// lost tells whether the median is the worse side of 1, as it is shown.
func (r ratio) lost() bool {
	v := r.values.Median()
	if r.ceiling || measure.Number(v) == "1.00" {
		return false
	}
	return v > 1 == r.lowWins && v != 1
}

// aim is the target in words; "–" where there is none.
func (r ratio) aim() string {
	switch g := r.goal; {
	case g.bound == 0:
		return "–"
	case r.noRoom():
		return fmt.Sprintf("≥ %s × of the ceiling, which is %s ×", measure.Number(ceilingShare), measure.Number(g.room.Median()))
	case r.lowWins:
		return "≤ " + measure.Number(g.bound) + " ×"
	default:
		return "≥ " + measure.Number(g.bound) + " ×"
	}
}

// missed tells whether there is a target that the median does not come to.
func (r ratio) missed() bool {
	switch g := r.goal; {
	case g.bound == 0:
		return false
	case r.noRoom():
		return g.used.Median() < ceilingShare
	case r.lowWins:
		return r.values.Median() > g.bound
	default:
		return r.values.Median() < g.bound
	}
}

// verdict is what has become of the target.
func (r ratio) verdict() string {
	if r.goal.bound == 0 {
		return ""
	}
	result := map[bool]string{false: "reached", true: "missed"}[r.missed()]
	if r.noRoom() {
		return measure.Number(r.goal.used.Median()) + " × of it: " + result
	}
	return result
}

func (r *report) ratio(all ...ratio) {
	for _, one := range all {
		if len(one.values) > 0 {
			r.ratios = append(r.ratios, one)
		}
	}
}

func (r *report) table(t measure.Table) {
	if len(t.Rows) > 0 {
		r.tables = append(r.tables, t)
	}
}

// leaveOut notes who is missing, once for each reason.
func (r *report) leaveOut(name string, why error) {
	first, _, _ := strings.Cut(why.Error(), "\n")
	line := fmt.Sprintf("%s: %s", name, first)
	for _, known := range r.absent {
		if known == line {
			return
		}
	}
	r.absent = append(r.absent, line)
}

func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.about {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, line := range r.absent {
		fmt.Fprintf(&b, "- Left out: %s\n", line)
	}
	if len(r.ratios) > 0 {
		r.ratioTable().AppendTo(&b)
		r.list(&b, "What the yard loses", "Nothing", func(one ratio) (string, bool) {
			return one.values.Spread(), one.lost()
		})
		r.list(&b, "Targets that are missed", "None", func(one ratio) (string, bool) {
			return "target " + one.aim(), one.missed()
		})
	}
	for _, t := range r.tables {
		t.AppendTo(&b)
	}
	return b.String()
}

func (r *report) ratioTable() measure.Table {
	t := measure.Table{Title: "Ratios", Head: []string{"figure", "median", "spread", "better is", "", "target", ""}}
	for _, one := range r.ratios {
		better, result := "more", "won"
		if one.lowWins {
			better = "less"
		}
		switch {
		case one.ceiling:
			better, result = "–", ""
		case one.lost():
			result = "lost"
		case measure.Number(one.values.Median()) == "1.00" || one.values.Median() == 1:
			result = "even"
		}
		t.Rows = append(t.Rows, []string{one.what, measure.Number(one.values.Median()) + " ×", one.values.Spread(), better, result, one.aim(), one.verdict()})
	}
	return t
}

// list shows some of the ratios once more under a title, so that nobody has to look for them.
func (r *report) list(b *strings.Builder, title, none string, choose func(ratio) (note string, chosen bool)) {
	fmt.Fprintf(b, "\n### %s\n\n", title)
	found := false
	for _, one := range r.ratios {
		if note, chosen := choose(one); chosen {
			found = true
			fmt.Fprintf(b, "- %s: %s × (%s)\n", one.what, measure.Number(one.values.Median()), note)
		}
	}
	if !found {
		fmt.Fprintf(b, "%s, by medians of this run.\n", none)
	}
}
