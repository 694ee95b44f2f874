package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/test/bench/measure"
)

// best takes the larger value of each round.
func best(all ...measure.Series) measure.Series {
	top := slices.Clone(all[0])
	for _, s := range all[1:] {
		for i := range top {
			top[i] = max(top[i], s[i])
		}
	}
	return top
}

// target is what a figure is meant to reach; the zero value: nothing.
type target struct {
	text    string
	reached func(v float64) bool
	beyond  bool // also for what could not do better
}

func atLeast(least float64) target {
	return target{text: "≥ " + measure.Number(least), reached: func(v float64) bool { return v >= least }}
}

func atMost(most float64) target {
	return target{text: "≤ " + measure.Number(most), reached: func(v float64) bool { return v <= most }}
}

func (t target) verdict(v float64) string {
	switch {
	case t.reached(v):
		return "reached"
	case t.beyond:
		return "missed; the floor misses it, too"
	}
	return "missed"
}

// unlessBeyond is the target with a note for those who miss it, where the floor does: what was
// measured of the least that is to be done.
func (t target) unlessBeyond(floor measure.Series) target {
	t.beyond = !t.reached(floor.Median())
	return t
}

// report is what is printed in the end.
type report struct {
	about  []string
	goals  [][]string
	tables []measure.Table
}

// goal adds a row to the first table.
func (r *report) goal(what string, values measure.Series, unit string, t target) {
	v := values.Median()
	row := []string{what, withUnit(measure.Number(v), unit), values.Spread(), "–", ""}
	if t.reached != nil {
		row[3], row[4] = withUnit(t.text, unit), t.verdict(v)
	}
	r.goals = append(r.goals, row)
}

func withUnit(value, unit string) string { return strings.TrimSpace(value + " " + unit) }

// rates adds a table of what each contender did.
func (r *report) rates(title string, results []result, notes ...string) {
	t := measure.Table{Title: title, Notes: notes,
		Head: []string{"what", "events/s", "spread", "MB/s", "allocations per event"}}
	for _, c := range results {
		t.Rows = append(t.Rows, []string{c.name,
			measure.Number(c.rate().Median()), c.rate().Spread(),
			measure.Number(c.bytesPerSecond().Median() / 1e6), measure.Number(c.allocationsPerEvent().Median())})
	}
	r.tables = append(r.tables, t)
}

// table adds any other table.
func (r *report) table(t measure.Table) { r.tables = append(r.tables, t) }

func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.about {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	measure.Table{Title: "Ratios and targets", Rows: r.goals,
		Head: []string{"figure", "median", "spread", "target", ""}}.AppendTo(&b)
	for _, t := range r.tables {
		t.AppendTo(&b)
	}
	return b.String()
}
