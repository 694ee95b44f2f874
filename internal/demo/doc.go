// Package demo is `eventyard demo`: a hundred thousand homes on one machine, with programs that can be
// killed while they work, and books that show that nothing is lost by it.
//
//	gateway ──▶ hub sensors ──▶ consumer × 5, group aggregator ──▶ blobs: a line a home, a blob a minute
//	   │            └─────────▶ watcher × 2, group live-view ────▶ the page of a resident
//	   ├──────▶ topic home-alarms ──▶ three webhooks
//	   └──────▶ hub oddities ──▶ function score-anomaly, over HTTP
//
// The yard, the gateway, the consumers and the watchers are processes of their own, children of the
// command, so that a kill is a real kill. The parent supervises them, plays the webhooks, the scorer
// and a mailbox, serves the pages and keeps the books: none of that is in the yard, which can be
// killed, too.
//
// Gateway, consumers and watchers use the public library as any user's program does (packages hub,
// processor, grid), and can be read as examples of it. They get their settings as a line of JSON on
// standard input, later lines are orders, and what they have done they write as lines to standard
// output (lines.go). The end of standard input ends them, so that none outlives the parent.
//
// What is decided without I/O is apart, and tested by itself: which home reports when and what
// (homes.go, schedule.go), what a minute adds up to (tally.go), whether the books balance (books.go,
// reread.go), whether the rate is reached (pace.go), and how all of it looks (board.go, …).
package demo
