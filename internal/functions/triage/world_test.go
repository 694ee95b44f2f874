package triage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/setaside/ranges"
)

// world is a partition, a function and everything that survives its instances. Who breaks a promise
// panics with a broken.
type world struct {
	random   *rand.Rand
	policy   Policy
	style    style
	lanes    int // keys are dealt to them anew by each instance
	maxBatch int
	// even: batches are as large as they may be, and so the same each time. lazy: checkpoints are
	// stored now and then only.
	even, lazy bool
	// crashes is how often an instance may still be killed at random, stops how often it may still
	// be stopped in good order, moves how often an operator may still move the checkpoint, and
	// rewinds how often that was backwards.
	crashes, stops, moves, rewinds int

	events []*happening

	// What is durable.
	record     []byte
	checkpoint int64
	epoch      int64
	hub        poisonHub

	calls, deaths int
	log           []string
}

// happening is an event, what is hidden in it, and what has become of it.
type happening struct {
	nature nature
	left   int // how often it will still fail, if it does so only for a while
	key    int
	// handled: a call for it has succeeded; killed: how often it was the only one of a wary call
	// that was killed from outside.
	handled bool
	killed  int
	passed  bool // over by an operator: nobody need handle it
}

type nature int

const (
	good   nature = iota
	flaky         // fails a while
	busy          // says Later for a while
	guilty        // fails always
	toxic         // says Poison always
	killer        // the instance dies
	natures
)

func (n nature) innocent() bool { return n < guilty }

// style is how the function answers.
type style int

const (
	wholeBatch style = iota // tries all, one error for all
	results                 // tries all, a result for each
	oneByOne                // stops at the first that fails
	anyStyle                // now this, now that
	styles
)

type (
	broken string   // a promise
	end    struct{} // of an instance
)

func (w *world) broken(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// run runs instances one after the other until everything is done.
func (w *world) run() {
	for w.checkpoint < int64(len(w.events))-1 {
		if w.epoch++; w.epoch > 2000 {
			w.broken("it does not end")
		}
		w.live()
		if w.moves > 0 && w.random.IntN(5) == 0 {
			w.move()
		}
	}
	w.judge()
}

// move is what an operator does.
func (w *world) move() {
	to := w.random.Int64N(int64(len(w.events))) - 1
	w.note("moved from %d to %d", w.checkpoint, to)
	w.moves--
	if to < w.checkpoint {
		w.rewinds++
	}
	for n := w.checkpoint + 1; n <= to; n++ {
		w.events[n].passed = true
	}
	w.checkpoint = to
}

// live is the life of an instance.
func (w *world) live() {
	defer func() {
		if r := recover(); r != nil {
			if _, ended := r.(end); !ended {
				panic(r)
			}
		}
	}()
	newInstance(w).run()
}

// judge looks at what has become of all.
func (w *world) judge() {
	for n, ev := range w.events {
		away := w.hub.count(int64(n))
		switch {
		case ev.nature.innocent() && away > 0:
			w.broken("%d is innocent and was put away", n)
		case ev.nature.innocent() && !ev.handled && !ev.passed:
			w.broken("%d was lost", n)
		case !ev.nature.innocent() && (away > 1+w.rewinds || away == 0 && !ev.passed):
			w.broken("%d was put away %d times", n, away)
		}
	}
	for _, i := range w.hub.stored {
		switch {
		case w.events[i.Sequence].nature == guilty && i.Attempts <= w.policy.Retries:
			w.broken("%d was put away after %d attempts", i.Sequence, i.Attempts)
		case w.events[i.Sequence].nature == killer && i.Deaths < w.policy.deaths():
			w.broken("%d was put away after %d deaths", i.Sequence, i.Deaths)
		}
	}
}

// succeeded is told when the function is done with an event.
func (w *world) succeeded(n int64) {
	ev := w.events[n]
	if !ev.handled && w.style != results && w.style != anyStyle { // there the program chooses the order
		for i, before := range w.events[:n] {
			if (w.lanes == 1 || before.key == ev.key) && !before.handled && !before.passed && w.hub.count(int64(i)) == 0 {
				w.broken("%d was handled before %d", n, i)
			}
		}
	}
	ev.handled = true
}

// poisonHub stores each number of a producer once, and misses none.
type poisonHub struct{ stored []Intent }

func (h *poisonHub) count(n int64) (count int) {
	for _, i := range h.stored {
		if i.Sequence == n {
			count++
		}
	}
	return count
}

func (w *world) send(i Intent) {
	next := int32(0)
	for _, old := range w.hub.stored {
		if old.Producer != i.Producer {
			continue
		}
		if next++; old.Number == i.Number {
			if old.Sequence != i.Sequence {
				w.broken("the poison event of %d is lost: number %d of %d is that of %d", i.Sequence, i.Number, i.Producer, old.Sequence)
			}
			return
		}
	}
	if i.Number != next {
		w.broken("number %d of %d is out of order, %d is next", i.Number, i.Producer, next)
	}
	w.hub.stored = append(w.hub.stored, i)
}

// answer is what the function says of events. Those of which it dies end the instance.
func (w *world) answer(in *instance, events []int64) (Result, map[int64]Result) {
	how := w.style
	if how == anyStyle {
		how = style(w.random.IntN(int(anyStyle)))
	}
	each := map[int64]Result{}
	for i, n := range events {
		r := w.try(in, n)
		each[n] = r
		if how == oneByOne && r.Verdict != Done {
			for _, behind := range events[i+1:] {
				each[behind] = Result{Verdict: Untouched}
			}
			break
		}
	}
	if how != wholeBatch {
		for _, n := range events {
			if each[n].Verdict == Done {
				w.succeeded(n)
			}
		}
		return Result{}, each
	}
	return w.together(events, each), nil
}

// together is one verdict for all: that of any that failed.
func (w *world) together(events []int64, each map[int64]Result) Result {
	var bad []Result
	for _, n := range events {
		if each[n].Verdict != Done {
			bad = append(bad, each[n])
		}
	}
	if len(bad) > 0 {
		return bad[w.random.IntN(len(bad))]
	}
	for _, n := range events {
		w.succeeded(n)
	}
	return Result{}
}

// try is what the function does with one event.
func (w *world) try(in *instance, n int64) Result {
	ev := w.events[n]
	switch ev.nature {
	case killer:
		w.deaths++
		w.note("%d killed the instance", n)
		in.die()
	case toxic:
		return Result{Verdict: Poison, Reason: "toxic"}
	case guilty:
		return Result{Verdict: Failed, Reason: "guilty"}
	case flaky, busy:
		if ev.left == 0 {
			break
		}
		ev.left--
		if ev.nature == busy {
			return Result{Verdict: Later, Wait: time.Second, Reason: "busy"}
		}
		return Result{Verdict: Failed, Reason: "flaky"}
	}
	return Result{}
}

// keys gives which lane each key has with this instance.
func (w *world) keys() []int {
	keys := make([]int, 4)
	for i := range keys {
		keys[i] = w.random.IntN(w.lanes)
	}
	return keys
}

func numbers(s ranges.Set) []int64 {
	var list []int64
	for _, r := range s {
		for n := r.First; n <= r.Last; n++ {
			list = append(list, n)
		}
	}
	return slices.Clip(list)
}
