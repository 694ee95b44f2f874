// Package pages runs what the pages of the docs show. It reads the blocks of a page in their order, runs its
// commands in a shell as a reader would, and compares what they print with what the page shows.
//
// Each block of sh is run, and a block of text behind it is what it prints; [Like] says how alike that has to
// be. A comment on the line before a block says otherwise:
//
//	<!-- background: NAME -->  runs in a terminal of its own; the same name again ends the one before
//	<!-- after: NAME, … -->    runs when these terminals have been ended, as Ctrl-C does
//	<!-- exits: CODE -->       runs, and ends with this code instead of 0
//	<!-- until -->             runs again and again, until it prints what the page shows
//	<!-- prints: NAME -->      is not run: what that terminal prints now
//	<!-- file: NAME -->        is not run: later blocks find it in a file
//	<!-- not run: WHY -->      is left out
//
// Blocks of other languages without such a comment are for reading only.
package pages

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Block is one that a page asks the reader to do something with.
type Block struct {
	Line int // of its first line in the page
	Kind Kind
	Name string // of the terminals or the file, the code it ends with, or why it is not run
	Text string
	// Shows is what the page says that it prints; empty: nothing is said.
	Shows string
}

// Kind is what is done with a block.
type Kind int

// The kinds.
const (
	Run Kind = iota
	After
	Exits
	Background
	Until
	Prints
	File
	NotRun
)

var kinds = map[string]Kind{"after": After, "exits": Exits, "background": Background, "until": Until, "prints": Prints, "file": File, "not run": NotRun}

var (
	comment = regexp.MustCompile(`^<!-- ([a-z ]+?)(?:: (.*?))? -->$`)
	fence   = regexp.MustCompile("^```(\\w*)")
)

// Read gives the blocks of a page, in their order.
func Read(file string) (blocks []Block, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var at reading
	for i, line := range strings.Split(string(text), "\n") {
		if err := at.take(i+1, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	return at.blocks, nil
}

// reading is how far a page has been read.
type reading struct {
	blocks []Block
	marked *Block // by the comment on the line before; nil: none
	// lines are those of the block that the page is in; nil: it is in none.
	lines    []string
	language string
	begins   int
}

func (r *reading) take(number int, line string) error {
	found := fence.FindStringSubmatch(line)
	switch {
	case r.lines != nil && line == "```":
		r.end()
	case r.lines != nil:
		r.lines = append(r.lines, line)
	case found != nil:
		r.lines, r.language, r.begins = []string{}, found[1], number+1
	default:
		return r.mark(line)
	}
	return nil
}

// mark takes note of a comment. Comments of other forms are none of ours.
func (r *reading) mark(line string) error {
	r.marked = nil
	found := comment.FindStringSubmatch(line)
	if found == nil {
		return nil
	}
	kind, known := kinds[found[1]]
	if !known {
		return nil
	}
	if (kind == Until) != (found[2] == "") {
		return fmt.Errorf("%s: it has to be said which, or why, and of until neither", line)
	}
	r.marked = &Block{Kind: kind, Name: found[2]}
	return nil
}

// end is behind the last line of a block.
func (r *reading) end() {
	text := strings.Join(r.lines, "\n")
	last := len(r.blocks) - 1
	switch {
	case r.marked != nil:
		r.add(*r.marked, text)
	case r.language == "sh":
		r.add(Block{}, text)
	case r.language == "text" && last >= 0 && r.blocks[last].Kind != File && r.blocks[last].Shows == "":
		r.blocks[last].Shows = text
	}
	r.lines, r.marked = nil, nil
}

func (r *reading) add(b Block, text string) {
	b.Line, b.Text = r.begins, text
	r.blocks = append(r.blocks, b)
}
