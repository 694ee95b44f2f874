package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// series are the values of one figure, one per round.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is the least and the most, for a table.
func (s series) spread() string {
	if len(s) < 2 {
		return "–"
	}
	return number(slices.Min(s)) + " – " + number(slices.Max(s))
}

// over divides round by round.
func (s series) over(other series) series {
	ratios := make(series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// best takes the larger value of each round.
func best(all ...series) series {
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
	return target{text: "≥ " + number(least), reached: func(v float64) bool { return v >= least }}
}

func atMost(most float64) target {
	return target{text: "≤ " + number(most), reached: func(v float64) bool { return v <= most }}
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
func (t target) unlessBeyond(floor series) target {
	t.beyond = !t.reached(floor.median())
	return t
}

// report is what is printed in the end.
type report struct {
	about    []string
	goals    [][]string
	sections []section
}

type section struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

// goal adds a row to the first table.
func (r *report) goal(what string, values series, unit string, t target) {
	v := values.median()
	row := []string{what, withUnit(number(v), unit), values.spread(), "–", ""}
	if t.reached != nil {
		row[3], row[4] = withUnit(t.text, unit), t.verdict(v)
	}
	r.goals = append(r.goals, row)
}

func withUnit(value, unit string) string { return strings.TrimSpace(value + " " + unit) }

// rates adds a table of what each contender did.
func (r *report) rates(title string, results []result, notes ...string) {
	s := section{title: title, notes: notes,
		head: []string{"what", "events/s", "spread", "MB/s", "allocations per event"}}
	for _, c := range results {
		s.rows = append(s.rows, []string{c.name,
			number(c.rate().median()), c.rate().spread(),
			number(c.bytesPerSecond().median() / 1e6), number(c.allocationsPerEvent().median())})
	}
	r.sections = append(r.sections, s)
}

// table adds any other table.
func (r *report) table(s section) { r.sections = append(r.sections, s) }

func (r *report) markdown() string {
	var b strings.Builder
	for _, line := range r.about {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	writeSection(&b, section{title: "Ratios and targets", rows: r.goals,
		head: []string{"figure", "median", "spread", "target", ""}})
	for _, s := range r.sections {
		writeSection(&b, s)
	}
	return b.String()
}

func writeSection(b *strings.Builder, s section) {
	fmt.Fprintf(b, "\n### %s\n\n", s.title)
	writeRow(b, s.head)
	b.WriteString("|---|")
	for range s.head[1:] {
		b.WriteString("---:|")
	}
	b.WriteString("\n")
	for _, row := range s.rows {
		writeRow(b, row)
	}
	for _, note := range s.notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
}

func writeRow(b *strings.Builder, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// number writes a value with three digits that count.
func number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case size >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case size >= 1e4:
		return fmt.Sprintf("%.1f k", v/1e3)
	case size >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}

// replaceMarked puts text between the marks of that name in a file.
func replaceMarked(name, mark, text string) error {
	begin, end := "<!-- "+mark+": begin -->", "<!-- "+mark+": end -->"
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(old, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return fmt.Errorf("write %s: it needs the lines %s and %s", name, begin, end)
	}
	return os.WriteFile(name, fmt.Appendf(nil, "%s%s\n\n%s\n%s%s", before, begin, text, end, after), 0o644)
}
