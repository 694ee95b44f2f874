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
}

// lost tells whether the median is the worse side of 1, as it is shown.
func (r ratio) lost() bool {
	v := r.values.Median()
	if r.ceiling || measure.Number(v) == "1.00" {
		return false
	}
	return v > 1 == r.lowWins && v != 1
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
		b.WriteString("\n### What the yard loses\n\n")
		b.WriteString(r.losses())
	}
	for _, t := range r.tables {
		t.AppendTo(&b)
	}
	return b.String()
}

func (r *report) ratioTable() measure.Table {
	t := measure.Table{Title: "Ratios", Head: []string{"figure", "median", "spread", "better is", ""}}
	for _, one := range r.ratios {
		better, verdict := "more", "won"
		if one.lowWins {
			better = "less"
		}
		switch {
		case one.ceiling:
			better, verdict = "–", ""
		case one.lost():
			verdict = "lost"
		case measure.Number(one.values.Median()) == "1.00" || one.values.Median() == 1:
			verdict = "even"
		}
		t.Rows = append(t.Rows, []string{one.what, measure.Number(one.values.Median()) + " ×", one.values.Spread(), better, verdict})
	}
	return t
}

// losses are the rows whose median is on the worse side, as a list, so that nobody has to look for them.
func (r *report) losses() string {
	var b strings.Builder
	for _, one := range r.ratios {
		if one.lost() {
			fmt.Fprintf(&b, "- %s: %s × (%s)\n", one.what, measure.Number(one.values.Median()), one.values.Spread())
		}
	}
	if b.Len() == 0 {
		return "Nothing, by medians of this run.\n"
	}
	return b.String()
}
