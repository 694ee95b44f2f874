package demo

import (
	"context"
	"fmt"
	"time"
)

// view shows what happens until its context ends.
type view interface{ run(ctx context.Context) }

// newView is a screen where somebody sits at a terminal, and lines elsewhere.
func newView(d *demo) view {
	if s, ok := newScreen(d); ok {
		return s
	}
	return &lines{d: d}
}

// lineEvery is how often there is a line where nobody sits at a terminal.
const lineEvery = 10 * time.Second

// lines are for logs and tests: one each ten seconds, and one for each thing that happens.
type lines struct {
	d    *demo
	seen int // entries of the journal
}

func (v *lines) run(ctx context.Context) {
	b := v.d.board.Load()
	fmt.Fprintf(v.d.cfg.Out, "%s homes report every %s to %s\n  console  %s\n  levers   %s\nCtrl-C ends it and shows the books.\n",
		thousands(v.d.cfg.Homes), periodWord(v.d.cfg.Every), consumersWord(v.d.cfg.Consumers), b.Console, b.Levers)
	tick, next := time.NewTicker(time.Second), time.Now().Add(lineEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			due := (*Board)(nil)
			if time.Now().After(next) {
				next, due = next.Add(lineEvery), v.d.board.Load()
			}
			v.write(due)
		case <-ctx.Done():
			v.write(nil)
			return
		}
	}
}

// write writes what has happened and, where it is due, the line of a board among it, in the order of their times.
func (v *lines) write(due *Board) {
	var fresh []Entry
	fresh, v.seen = v.d.journal.since(v.seen)
	for _, e := range fresh {
		if due != nil && e.At.After(due.At) {
			fmt.Fprintln(v.d.cfg.Out, logLine(due))
			due = nil
		}
		fmt.Fprintf(v.d.cfg.Out, "%s  %s\n", clock(e.At), e.Text)
	}
	if due != nil {
		fmt.Fprintln(v.d.cfg.Out, logLine(due))
	}
}

// logLine is a board in one line.
func logLine(b *Board) string {
	return fmt.Sprintf("%s  homes %s  sent %s/s (%.0f %% of what was promised)  aggregated %s/s  behind %s  acknowledged %s  in blobs %s  on their way %s  lost %s  read twice %s",
		clock(b.At), thousands(b.Rate.Homes), thousands(int64(b.Rate.Sent)), 100*b.Rate.Reached, thousands(int64(b.Aggregated)), seconds(b.Behind),
		thousands(b.Books.Acknowledged), thousands(b.Books.InBlobs), thousands(b.Books.OnTheWay), thousands(b.Books.Lost), thousands(b.Books.ReadTwice))
}
