package demo

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// paint colours text, where that is wanted.
type paint bool

func (p paint) with(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.with("1", s) }
func (p paint) dim(s string) string    { return p.with("2", s) }
func (p paint) red(s string) string    { return p.with("31", s) }
func (p paint) green(s string) string  { return p.with("32", s) }
func (p paint) yellow(s string) string { return p.with("33", s) }

// Widths of a terminal.
const (
	narrowest = 80  // less than that gets a list in place of the table
	roomy     = 104 // enough for the processes' numbers, too
)

// shownEntries is how many lines of the journal are on the screen.
const shownEntries = 6

// drawBoard draws a board as lines of at most that width. It is pure.
func drawBoard(b *Board, width int, p paint) []string {
	d := &drawing{b: b, width: width, p: p}
	d.heading()
	d.consumers()
	d.services()
	d.books()
	d.journal()
	d.keys()
	return d.lines
}

type drawing struct {
	b     *Board
	width int
	p     paint
	lines []string
}

// part is some text with a colour of its own.
type part struct {
	text  string
	paint func(string) string
}

func plain(text string) part { return part{text: text} }

// line adds parts as one line, cut to the width; what is measured is the text without its colours.
func (d *drawing) line(parts ...part) {
	left := d.width
	var b strings.Builder
	for _, p := range parts {
		text := p.text
		if n := utf8.RuneCountInString(text); n > left {
			text = string([]rune(text)[:max(0, left)])
		}
		left -= utf8.RuneCountInString(text)
		if p.paint != nil {
			text = p.paint(text)
		}
		b.WriteString(text)
	}
	d.lines = append(d.lines, b.String())
}

// flow adds pieces, as many to a line as have room; a piece is never divided.
func (d *drawing) flow(indent string, pieces ...[]part) {
	row, used := []part{plain(indent)}, len(indent)
	for _, piece := range pieces {
		length := 0
		for _, p := range piece {
			length += utf8.RuneCountInString(p.text)
		}
		if used > len(indent) && used+length > d.width {
			d.line(row...)
			row, used = []part{plain(indent)}, len(indent)
		}
		row = append(append(row, piece...), plain("   "))
		used += length + 3
	}
	d.line(row...)
}

func (d *drawing) gap() { d.lines = append(d.lines, "") }

func (d *drawing) figure(name, value string, colour func(string) string) []part {
	return []part{plain(name + " "), {value, colour}}
}

func (d *drawing) heading() {
	b, p := d.b, d.p
	d.flow("", []part{{"eventyard demo", p.bold}}, []part{plain("running " + seconds(b.At.Sub(b.Started)))},
		[]part{plain("console " + b.Console)}, []part{plain("levers " + b.Levers)})
	d.gap()
	share := p.green
	if b.Rate.Reached < paceLeast {
		share = p.yellow
	}
	pieces := [][]part{
		d.figure("homes", thousands(b.Rate.Homes), p.bold),
		append(d.figure("sent", thousands(int64(b.Rate.Sent))+"/s", p.bold), plain(" "), part{fmt.Sprintf("%.0f %% of what was promised", 100*b.Rate.Reached), share}),
		d.figure("aggregated", thousands(int64(b.Aggregated))+"/s", p.bold), d.figure("behind", seconds(b.Behind), p.bold), d.figure("to page", seconds(b.ToPage), p.bold),
	}
	if b.Machine >= 0 {
		pieces = append(pieces, d.figure("cpu", fmt.Sprintf("%.0f %%", 100*b.Machine), p.bold))
	}
	if !b.YardUp {
		pieces = append(pieces, []part{{"the yard is away", p.red}})
	}
	d.flow("  ", pieces...)
	d.gap()
}

// consumers are a table of who has which partition, or a list where that has no room.
func (d *drawing) consumers() {
	if d.width < narrowest {
		for _, c := range d.b.Consumers {
			d.listed(c)
		}
		d.gap()
		return
	}
	head := fmt.Sprintf("  %-*s", d.nameWidth(), "group "+aggregatorGroup)
	for _, o := range d.b.Owners {
		head += fmt.Sprintf("%3s", o.Partition)
	}
	d.line(part{head + fmt.Sprintf("%9s %8s", "read/s", "behind"), d.p.dim})
	for _, c := range d.b.Consumers {
		d.row(c)
	}
	d.gap()
}

// nameWidth is that of the first column.
func (d *drawing) nameWidth() int {
	if d.width >= roomy {
		return 32
	}
	return 12
}

func (d *drawing) row(c ConsumerRow) {
	parts := []part{plain(fmt.Sprintf("  %-12s", c.Name))}
	if d.width >= roomy {
		process := part{fmt.Sprintf("%-20s", fmt.Sprintf("process %d", c.Process)), d.p.dim}
		if c.Gone() {
			process = part{fmt.Sprintf("%-20s", c.Fate), d.p.red}
		}
		parts = append(parts, process)
	}
	for _, o := range d.b.Owners {
		parts = append(parts, d.cell(c, o))
	}
	switch {
	case !c.Gone():
		parts = append(parts, plain(fmt.Sprintf("%9s %8s", thousands(int64(c.Rate)), seconds(c.Behind))))
	case d.width < roomy:
		parts = append(parts, part{fmt.Sprintf("%18s", c.Fate), d.p.red})
	}
	d.line(parts...)
}

// cell says whether a consumer has a partition, gives it away or gets it.
func (d *drawing) cell(c ConsumerRow, o OwnerRow) part {
	switch {
	case o.Owner == c.Name && o.Next != "" && o.Next != c.Name:
		return part{"  →", d.p.yellow}
	case o.Owner == c.Name && c.Gone():
		return part{"  █", d.p.red}
	case o.Owner == c.Name:
		return part{"  █", d.p.green}
	case o.Next == c.Name:
		return part{"  ←", d.p.yellow}
	}
	return part{"  ·", d.p.dim}
}

func (d *drawing) listed(c ConsumerRow) {
	if c.Gone() {
		d.line(plain(fmt.Sprintf("  %-12s", c.Name)), part{c.Fate, d.p.red})
		return
	}
	d.line(plain(fmt.Sprintf("  %-12s", c.Name)), part{strings.Join(c.Partitions, " "), d.p.green}, plain(fmt.Sprintf("   %s/s", thousands(int64(c.Rate)))))
}

// services are the webhooks and the scorer.
func (d *drawing) services() {
	var pieces [][]part
	for _, h := range d.b.Hooks {
		state := part{h.State, d.p.green}
		if h.State != "healthy" {
			state.paint = d.p.yellow
		}
		text := "   " + waiting(h.Waiting)
		if h.State == "probation" && h.Until.After(d.b.At) {
			text += ", probe in " + seconds(h.Until.Sub(d.b.At))
		}
		if h.Dead > 0 {
			text += ", " + dead(h.Dead)
		}
		pieces = append(pieces, []part{plain(fmt.Sprintf("%-14s ", h.Name)), state, plain(text)})
	}
	s := d.b.Scorer
	state := part{s.State, d.p.green}
	if s.State != "running" {
		state.paint = d.p.red
	}
	if s.Open() {
		state.text = "circuit " + s.State
	}
	pieces = append(pieces, []part{plain(fmt.Sprintf("%-14s ", scorer)), state, plain(fmt.Sprintf("   %s, %d put away", waiting(s.Waiting), s.Poisoned+s.Innocent))})
	for _, piece := range pieces {
		d.line(append([]part{plain("  ")}, piece...)...)
	}
	d.gap()
}

func (d *drawing) books() {
	b, p := d.b.Books, d.p
	bad := func(n int64) func(string) string {
		if n > 0 {
			return p.red
		}
		return p.green
	}
	d.flow("  ", d.figure("acknowledged", thousands(b.Acknowledged), p.bold), d.figure("in blobs", thousands(b.InBlobs), p.bold),
		d.figure("on their way", thousands(b.OnTheWay), p.bold), d.figure("lost", thousands(b.Lost), bad(b.Lost)),
		d.figure("read twice", thousands(b.ReadTwice), p.bold), d.figure("counted twice", thousands(b.CountedTwice), bad(b.CountedTwice)))
	d.gap()
}

func (d *drawing) journal() {
	for _, e := range slices.Clone(d.b.Journal[:min(len(d.b.Journal), shownEntries)]) {
		d.line(part{"  " + clock(e.At) + "  " + e.Text, d.p.dim})
	}
	if len(d.b.Journal) > 0 {
		d.gap()
	}
}

func (d *drawing) keys() {
	var pieces [][]part
	for _, k := range keysOfLevers {
		pieces = append(pieces, []part{{string(k.key), d.p.bold}, plain(" " + k.text)})
	}
	d.flow("  ", pieces...)
}
