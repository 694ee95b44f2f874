package demo

import (
	"context"
	"fmt"
	"time"
)

// lineEvery is how often there is a line where nobody sits at a terminal.
const lineEvery = 10 * time.Second

// view writes what happens to where nobody sits at a terminal: a line each ten seconds, and one for
// each thing that happens.
type view struct {
	d    *demo
	seen int // entries of the journal
}

func newView(d *demo) *view { return &view{d: d} }

func (v *view) run(ctx context.Context) {
	v.begin()
	tick, next := time.NewTicker(time.Second), time.Now().Add(lineEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.entries()
			if time.Now().After(next) {
				next = next.Add(lineEvery)
				fmt.Fprintln(v.d.cfg.Out, logLine(v.d.board.Load()))
			}
		case <-ctx.Done():
			v.entries()
			return
		}
	}
}

func (v *view) begin() {
	b := v.d.board.Load()
	fmt.Fprintf(v.d.cfg.Out, "%s homes report every %s to %d consumers\n  console  %s\n  levers   %s\nCtrl-C ends it and shows the books.\n",
		thousands(v.d.cfg.Homes), v.d.cfg.Every, v.d.cfg.Consumers, b.Console, b.Levers)
}

func (v *view) entries() {
	var fresh []Entry
	fresh, v.seen = v.d.journal.since(v.seen)
	for _, e := range fresh {
		fmt.Fprintf(v.d.cfg.Out, "%s  %s\n", clock(e.At), e.Text)
	}
}

func (v *view) closing() {
	v.d.journal.note(time.Now(), "no more is sent; the books are closed when everything has arrived")
}
func (v *view) end() {}

// logLine is a board in one line.
func logLine(b *Board) string {
	return fmt.Sprintf("%s  homes %s  sent %s/s (%.0f %% of what was promised)  aggregated %s/s  behind %s  acknowledged %s  in blobs %s  on their way %s  lost %s  read twice %s",
		clock(b.At), thousands(b.Rate.Homes), thousands(int64(b.Rate.Sent)), 100*b.Rate.Reached, thousands(int64(b.Aggregated)), seconds(b.Behind),
		thousands(b.Books.Acknowledged), thousands(b.Books.InBlobs), thousands(b.Books.OnTheWay), thousands(b.Books.Lost), thousands(b.Books.ReadTwice))
}
