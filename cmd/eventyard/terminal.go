package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal tells whether a person sits at this end.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours words where somebody sees them.
type paint struct{ on bool }

func newPaint(w io.Writer) paint {
	return paint{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p paint) red(s string) string    { return p.with("31", s) }
func (p paint) green(s string) string  { return p.with("32", s) }
func (p paint) yellow(s string) string { return p.with("33", s) }

func (p paint) bold(s string) string { return p.with("1", s) }

// stateColours are of the words for how something is: well, not quite, and not at all.
var stateColours = map[string]string{
	"active": "32", "running": "32", "closed": "32", "live": "32", "healthy": "32",
	"pending": "33", "paused": "33", "half-open": "33", "probation": "33", "probing": "33", "starting": "33", "quiet": "33", "warning": "33",
	"failed": "31", "failing": "31", "open": "31", "disabled": "31", "expired": "31", "lost": "31", "broken": "31",
}

// state colours such a word, and leaves all others as they are.
func (p paint) state(word string) string {
	if code := stateColours[word]; code != "" {
		return p.with(code, word)
	}
	return word
}

// cells of a line are at least two blanks apart.
var cells = regexp.MustCompile(`\S+( \S+)*`)

// table colours a table that is lined up: its head, and the states in it.
func (p paint) table(text string) string {
	head, rows, found := strings.Cut(text, "\n")
	if !p.on || !found {
		return text
	}
	return p.bold(head) + "\n" + cells.ReplaceAllStringFunc(rows, p.state)
}

func (p paint) with(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// progress is a line that is written over and over, once a job has turned out to be
// long and only where somebody sees it.
type progress struct {
	w  io.Writer
	on bool
	// lines: where nobody sees it, it is a line every now and then.
	lines bool
	began time.Time
	last  time.Time
	shown bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
	// progressLine is how often there is a line of jobs that say elsewhere, too, how far they are.
	progressLine = 10 * time.Second
)

func newProgress(w io.Writer) *progress {
	return &progress{w: w, on: isTerminal(w), began: time.Now()}
}

// newLongProgress is for a job of minutes or more: where nobody sees it, it writes lines, for the
// log of whoever has begun it.
func newLongProgress(w io.Writer) *progress {
	p := newProgress(w)
	p.lines, p.last = !p.on, p.began
	return p
}

// show replaces the line, if it is time to.
func (p *progress) show(text func() string) {
	now := time.Now()
	if p.lines && now.Sub(p.last) >= progressLine {
		p.last = now
		fmt.Fprintln(p.w, text())
	}
	if !p.on || now.Sub(p.began) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(p.w, "\r\x1b[K%s", text())
}

// clear takes the line away.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// confirm asks before something is destroyed. Without a terminal it takes --yes.
func (c *cli) confirm(cmd *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(c.stdin) {
		return usagef(cmd, "this cannot be undone, and there is no terminal to confirm on: use --yes")
	}
	fmt.Fprintf(c.stderr, "%s [y/N] ", question)
	answer, err := ask(cmd.Context(), c.stdin)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("nothing was done: the answer was not yes")
}

// ask reads a line and gives up when ctx ends. The reading itself cannot be ended: on
// an interrupt it is left behind for the end of the process, which follows at once.
func ask(ctx context.Context, r io.Reader) (string, error) {
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		return line, nil
	case <-ctx.Done():
		return "", errInterrupted
	}
}
