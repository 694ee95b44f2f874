package cells

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What the directory is tried with; docs/internals/scale.md names the sources.
const (
	fronts    = 20 // nodes that clients reach
	cells     = 10
	hubs      = 200
	callRate  = 2000                   // a second, of all hubs
	moveEvery = 500 * time.Millisecond // far more often than in earnest
	hop       = time.Millisecond       // from a node to a cell
	lookUp    = 2 * time.Millisecond   // reading the directory itself
	tailCopy  = 200 * time.Millisecond // a hub is closed so long while it moves
	pause     = 50 * time.Millisecond  // before a call is tried again
	noAnswer  = time.Second            // after which a call is made again
)

// habit is what a node does after "not here".
type habit string

const (
	blind habit = "tries again"
	waits habit = "waits for the watch"
	looks habit = "reads the directory"
)

// rules can be broken on purpose, to see that it is noticed.
type rules struct {
	neverCloses, forgetsMarks bool
	lostAnswers               float64
}

// entry of the directory: where a hub is, since which revision.
type entry struct{ cell, revision int }

// log is a hub in a cell. By their marks it knows calls that it has stored.
type log struct {
	open   bool
	moved  int // the revision of the entry that says where to; zero: it is here, or being copied
	events []int
	marks  map[int]bool
}

// front is what a node knows of a hub.
type front struct {
	cache entry
	least int     // the revision that it must know before it asks again
	held  []*call // who waits for that
}

type call struct {
	id, hub, front int
	begun          time.Duration
	done           bool
}

type world struct {
	r         *rand.Rand
	rules     rules
	habit     habit
	delay     time.Duration // of a watch
	now       time.Duration
	agenda    map[time.Duration][]func() // by millisecond
	directory [hubs]entry
	revision  int
	logs      [cells][hubs]log
	fronts    [fronts][hubs]front
	calls     []*call

	sent, wrong, closed, moves, late int
	heard                            map[[3]int]time.Duration // when a node first heard that a hub moved
	took                             []float64
}

func newWorld(delay time.Duration, h habit, broken rules, lasts time.Duration) *world {
	w := &world{r: chance("directory"), rules: broken, habit: h, delay: delay, revision: 1, heard: map[[3]int]time.Duration{}, agenda: map[time.Duration][]func(){}}
	sums, sum := zipf(w.r, hubs), 0.0
	for hub := range hubs {
		w.directory[hub] = entry{w.r.IntN(cells), 1}
		w.logs[w.directory[hub].cell][hub] = log{open: true, marks: map[int]bool{}}
		for f := range fronts {
			w.fronts[f][hub].cache = w.directory[hub]
		}
		sum += sums[hub]
		sums[hub] = sum
	}
	anyHub := func() int { // by load
		hub, _ := slices.BinarySearch(sums, w.r.Float64()*sum)
		return hub
	}
	for at := time.Duration(0); at < lasts; at += time.Duration(w.r.ExpFloat64() / callRate * float64(time.Second)) {
		c := &call{id: len(w.calls), hub: anyHub(), front: w.r.IntN(fronts), begun: at}
		w.calls = append(w.calls, c)
		w.after(at, func() { w.send(c) })
	}
	for at := moveEvery; at < lasts; at += moveEvery {
		hub := anyHub()
		w.after(at, func() { w.move(hub) })
	}
	return w
}

// after has something done, a millisecond from now or later.
func (w *world) after(d time.Duration, do func()) {
	at := (w.now + d).Truncate(time.Millisecond)
	w.agenda[at] = append(w.agenda[at], do)
}

// move closes the hub, copies what is there, and switches it in the directory. Only then does the new
// cell open it, and the old one answer where to look.
func (w *world) move(hub int) {
	from := w.directory[hub].cell
	to := (from + 1 + w.r.IntN(cells-1)) % cells
	old := &w.logs[from][hub]
	if !old.open {
		return // it is moving
	}
	old.open = w.rules.neverCloses
	copied := log{open: true, events: slices.Clone(old.events), marks: maps.Clone(old.marks)}
	if w.rules.forgetsMarks {
		clear(copied.marks)
	}
	w.after(tailCopy, func() {
		w.moves++
		w.revision++
		e := entry{to, w.revision}
		w.directory[hub], w.logs[to][hub], *old = e, copied, log{moved: e.revision}
		for f := range fronts { // one watch in fifty is ten times as late
			delay := time.Duration(float64(w.delay) * (0.5 + w.r.Float64()))
			if w.r.IntN(50) == 0 {
				delay *= 10
			}
			w.after(delay, func() { w.learn(f, hub, e) })
		}
	})
}

// learn is a node's news of a hub; who waited for it goes on.
func (w *world) learn(f, hub int, e entry) {
	at := &w.fronts[f][hub]
	if at.cache.revision < e.revision {
		at.cache = e
	}
	if at.cache.revision >= at.least {
		held := at.held
		at.held = nil
		for _, c := range held {
			w.send(c)
		}
	}
}

// send makes a call where the node believes the hub to be, unless it knows better.
func (w *world) send(c *call) {
	at := &w.fronts[c.front][c.hub]
	if at.cache.revision < at.least && w.habit != blind {
		if at.held = append(at.held, c); len(at.held) == 1 && w.habit == looks {
			w.after(lookUp, func() { w.learn(c.front, c.hub, w.directory[c.hub]) })
		}
		return
	}
	w.sent++
	cell, sent := at.cache.cell, w.now
	w.after(hop, func() { w.arrive(c, &w.logs[cell][c.hub], sent) })
}

// arrive is what the cell does with a call.
func (w *world) arrive(c *call, l *log, sent time.Duration) {
	switch {
	case l.moved > 0:
		w.wrong++
		revision := l.moved
		w.after(hop, func() { w.notHere(c, revision, sent) })
	case !l.open:
		w.closed++
		w.after(hop+pause, func() { w.send(c) })
	default:
		if !l.marks[c.id] {
			l.marks[c.id] = true
			l.events = append(l.events, c.id)
		}
		if w.r.Float64() < w.rules.lostAnswers {
			w.after(noAnswer, func() { w.send(c) })
			return
		}
		c.done = true
		w.took = append(w.took, float64(w.now+hop-c.begun)/1e6)
	}
}

// notHere: what the node sent before it heard so may still go wrong, nothing after.
func (w *world) notHere(c *call, revision int, sent time.Duration) {
	key := [3]int{c.front, c.hub, revision}
	if first, again := w.heard[key]; !again {
		w.heard[key] = w.now
	} else if sent > first {
		w.late++
	}
	at := &w.fronts[c.front][c.hub]
	if at.least = max(at.least, revision); w.habit == blind {
		w.after(pause, func() { w.send(c) })
		return
	}
	w.send(c)
}

// run ends when nothing is left to do, and compares what was answered with what the logs have that
// the directory names.
func (w *world) run() (lost, twice, unanswered int) {
	for ; len(w.agenda) > 0; w.now += time.Millisecond {
		for _, do := range w.agenda[w.now] {
			do()
		}
		delete(w.agenda, w.now)
	}
	stored := make([]int, len(w.calls))
	for hub, e := range w.directory {
		for _, id := range w.logs[e.cell][hub].events {
			stored[id]++
		}
	}
	for _, c := range w.calls {
		switch {
		case !c.done:
			unanswered++
		case stored[c.id] == 0:
			lost++
		case stored[c.id] > 1:
			twice++
		}
	}
	return lost, twice, unanswered
}

// C2, C7: hubs move while nodes still believe them elsewhere. Nothing is lost or stored twice.
func TestStaleDirectories(t *testing.T) {
	for _, delay := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		for _, h := range []habit{blind, waits, looks} {
			if delay > time.Second && h == blind {
				continue // millions of calls in vain show no more than those before
			}
			t.Run(fmt.Sprintf("watch %v, %s", delay, h), func(t *testing.T) {
				w := newWorld(delay, h, rules{lostAnswers: 0.0002}, sized(10*time.Second, 5*time.Minute))
				lost, twice, unanswered := w.run()
				testkit.That(t, lost == 0 && twice == 0 && unanswered == 0, "%d lost, %d stored twice, %d not answered", lost, twice, unanswered)
				testkit.That(t, h == blind || w.late == 0, "%d calls went wrong after their node had heard", w.late)
				per := func(n int) float64 { return float64(n) / float64(w.moves) }
				t.Logf("%d calls, %d moves: %.1f wrong guesses a move, %.2f %% of all; %.1f met a closed hub; p50 %.0f ms, p99.9 %.0f ms, at most %.0f ms",
					len(w.calls), w.moves, per(w.wrong), 100*float64(w.wrong)/float64(w.sent), per(w.closed), quantile(w.took, 0.5), quantile(w.took, 0.999), quantile(w.took, 1))
			})
		}
	}
}

// What the rules are for is noticed when they are broken.
func TestBrokenRulesAreNoticed(t *testing.T) {
	for name, broken := range map[string]rules{"never closed": {neverCloses: true}, "marks forgotten": {forgetsMarks: true, lostAnswers: 0.1}} {
		t.Run(name, func(t *testing.T) {
			lost, twice, _ := newWorld(100*time.Millisecond, looks, broken, 10*time.Second).run()
			testkit.That(t, broken.neverCloses == (lost > 0) && broken.forgetsMarks == (twice > 0), "%d lost, %d stored twice", lost, twice)
		})
	}
}
