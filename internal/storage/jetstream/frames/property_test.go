package frames_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C1, C2: whatever the network does, what is confirmed counts, once, with the number that was
// given; each writer's order holds; what is refused never counts; and all readers come to the same,
// whatever mark they begin with.
func TestEveryWriterOfAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(2, 3).Draw(t, "nodes"))
		t.Repeat(w.some(t))
		w.heal(t)
		settled := w.check(t)
		for len(w.net) > 0 { // what arrives when all is over
			w.store(take(t, &w.net, "late packet"), 0)
		}
		testkit.Diff(t, settled, w.check(t))
	})
}

// C2: likewise where little is written, and days pass while frames are on their way: writers are
// forgotten, and what they have sent is not taken for a beginning.
func TestFramesThatAreHeldUpForDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(2)
		w.claim(t, w.nodes[0])
		all := w.actions()
		actions := map[string]func(*rapid.T){
			"submit": func(t *rapid.T) { m := draw(t, w.writers, "writer"); w.submit(m, 1); w.drive(t, m) },
			"a day":  func(t *rapid.T) { w.clock += 25 * hour },
		}
		for _, name := range []string{"store", "store, and again later", "time out", "fold", "acknowledge"} {
			actions[name] = all[name]
		}
		t.Repeat(actions)
		w.heal(t)
		settled := w.check(t)
		for len(w.net) > 0 {
			w.store(take(t, &w.net, "late packet"), 0)
		}
		testkit.Diff(t, settled, w.check(t))
	})
}

// C1: a reader that has missed a frame that counts knows it with the first frame whose writer had
// folded that one.
func TestAMissingFrameIsFoundByTheNextBase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(2)
		actions := w.actions()
		t.Repeat(map[string]func(*rapid.T){"submit": actions["submit"], "store": actions["store"], "fold": actions["fold"], "claim": actions["claim"]})
		w.heal(t)
		whole := w.read(t, frames.NewPartition(), 0)
		missed := rapid.IntRange(0, len(whole.verdicts)).Draw(t, "missed")
		if missed == len(whole.verdicts) || whole.verdicts[missed].Outcome != frames.Counted {
			return
		}
		reader := frames.NewPartition()
		for i, s := range w.stream {
			if i == missed {
				continue
			}
			h, err := frames.DecodeHeader(s.message)
			testkit.Must(t, err)
			v := reader.Apply(s.at, h)
			if i > missed && h.Base.Seq >= w.stream[missed].at {
				testkit.MustEqual(t, v.Outcome, frames.Hole, "at %d, from %+v", s.at, h.Base)
				testkit.That(t, v.Missing.First <= whole.verdicts[missed].First && v.Missing.Next > whole.verdicts[missed].First, "missing is %+v, without %d", v.Missing, whole.verdicts[missed].First)
				return
			}
		}
	})
}

// some leaves out some of the actions: in a run without many of them, those that are left go deeper.
func (w *world) some(t *rapid.T) map[string]func(*rapid.T) {
	all := w.actions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains([]string{"submit", "store", "fold"}, name) && !rapid.Bool().Draw(t, name) {
			delete(all, name)
		}
	}
	return all
}

// actions are what may happen at any time.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			m := draw(t, w.writers, "writer")
			for range rapid.IntRange(1, 12).Draw(t, "batches") {
				w.submit(m, rapid.IntRange(1, 3).Draw(t, "events"))
				if rapid.Bool().Draw(t, "in a frame by itself") {
					w.drive(t, m)
				}
			}
			w.drive(t, m)
		},
		"claim": func(t *rapid.T) {
			if w.claims < 4 {
				w.claim(t, draw(t, w.nodes, "node"))
			}
		},
		"give up": func(t *rapid.T) { w.giveUp(t, draw(t, w.writers, "writer")) },
		"store":   func(t *rapid.T) { w.store(take(t, &w.net, "packet"), rapid.IntRange(0, 2).Draw(t, "others")) },
		"store all in order, and acknowledge it": func(t *rapid.T) {
			for _, p := range w.net {
				w.store(p, 0)
			}
			w.net = nil
			acks := w.acks
			w.acks = nil
			for _, a := range acks {
				w.acknowledge(t, a)
			}
		},
		"store, and again later": func(t *rapid.T) { w.store(draw(t, w.net, "packet"), 0) },
		"lose":                   func(t *rapid.T) { take(t, &w.net, "packet") },
		"lose all behind": func(t *rapid.T) {
			w.net = w.net[:rapid.IntRange(0, len(w.net)).Draw(t, "kept")]
		},
		"acknowledge": func(t *rapid.T) { w.acknowledge(t, take(t, &w.acks, "acknowledgement")) },
		"lose acknowledgements": func(t *rapid.T) {
			take(t, &w.acks, "acknowledgement")
		},
		"time out": func(t *rapid.T) {
			m := draw(t, w.writers, "writer")
			w.fail(t, draw(t, m.waiting, "waiting"))
		},
		"fold": func(t *rapid.T) {
			n := draw(t, w.nodes, "node")
			w.advance(t, n, rapid.IntRange(0, len(w.stream)-n.folded).Draw(t, "messages"))
		},
		"mark": func(t *rapid.T) { w.mark(t, draw(t, w.nodes, "node")) },
		"go on from a mark": func(t *rapid.T) {
			m, n := draw(t, w.marks, "mark"), draw(t, w.nodes, "node")
			if m.folded > n.folded {
				w.restore(t, n, m)
			}
		},
		"time passes": func(t *rapid.T) {
			w.clock += rapid.SampledFrom([]int64{1, 1000, hour / 2, hour, 12 * hour, 30 * hour}).Draw(t, "milliseconds")
		},
	}
}

// draw chooses one; an action without a choice is skipped.
func draw[E any](t *rapid.T, from []E, what string) E {
	if len(from) == 0 {
		t.Skip("nothing to choose from")
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(t, what)]
}

// take chooses one and removes it.
func take[E any](t *rapid.T, from *[]E, what string) E {
	if len(*from) == 0 {
		t.Skip("nothing to choose from")
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, what)
	e := (*from)[i]
	*from = slices.Delete(slices.Clone(*from), i, i+1)
	return e
}

// check compares what writers were answered with what readers find. It gives the numbers.
func (w *world) check(t *rapid.T) map[string]eventlog.Sequence {
	whole := w.read(t, frames.NewPartition(), 0)
	for body, b := range w.content {
		testkit.MustThat(t, b.answer != nil, "%s has no answer", body)
		number, counts := whole.numbers[body]
		switch b.answer.Fate {
		case frames.Stored:
			testkit.MustThat(t, counts, "%s was confirmed and does not count", body)
			testkit.MustEqual(t, number, b.answer.First, "number of %s", body)
		case frames.Displaced:
			testkit.MustThat(t, !counts, "%s was refused and counts", body)
			testkit.MustThat(t, b.owner.writer.Lost(), "%s was refused for no reason", body)
		case frames.Unsent:
			testkit.MustThat(t, !counts, "%s was given up and counts", body)
			testkit.MustThat(t, b.owner.gaveUp, "%s was given up by nobody", body)
		case frames.Uncertain:
			testkit.MustThat(t, b.owner.gaveUp, "%s was given up by nobody", body)
		}
	}
	for _, m := range w.writers {
		w.checkOrder(t, m, whole.numbers)
	}
	w.checkClaims(t)
	for _, m := range w.marks {
		state, ok := m.mark.Find("p")
		testkit.MustThat(t, ok, "a mark without its partition")
		part := w.read(t, frames.Restore(m.mark.AsOf, state), m.folded)
		testkit.MustSlices(t, part.verdicts, whole.verdicts[m.folded:], "from the mark at %d", m.mark.AsOf)
		testkit.MustDiff(t, whole.state, part.state)
	}
	return maps.Clone(whole.numbers)
}

// checkOrder: what counts of a writer is in the order in which it was submitted.
func (w *world) checkOrder(t *rapid.T, m *machine, numbers map[string]eventlog.Sequence) {
	last := eventlog.NoSequence
	for body, b := range w.inOrder(m) {
		number, counts := numbers[body]
		if !counts {
			continue
		}
		testkit.MustThat(t, number > last, "%s has the number %d, and one before it %d", body, number, last)
		last = number + eventlog.Sequence(b.events) - 1
	}
}

// checkClaims: once a claim has written and another has held, nothing of the former counts: by then
// the other may have been given the same batches.
func (w *world) checkClaims(t *rapid.T) {
	fold := frames.NewPartition()
	wrote, over := map[uint32]bool{}, map[uint32]bool{} // by salt
	for _, s := range w.stream {
		h, err := frames.DecodeHeader(s.message)
		testkit.Must(t, err)
		outcome, salt := fold.Apply(s.at, h).Outcome, h.Epoch.Salt()
		switch {
		case h.Writer != pump:
		case outcome == frames.Counted:
			testkit.MustThat(t, !over[salt], "claim %d counts at %d, after another had held", salt, s.at)
			wrote[salt] = true
		case outcome == frames.Fenced:
			for other := range wrote {
				over[other] = over[other] || other != salt
			}
		}
	}
}

func (w *world) inOrder(m *machine) func(yield func(string, *batch) bool) {
	return func(yield func(string, *batch) bool) {
		names := slices.Collect(maps.Keys(w.content))
		names = slices.DeleteFunc(names, func(name string) bool { return w.content[name].owner != m })
		slices.SortFunc(names, func(a, b string) int { return int(w.content[a].ticket) - int(w.content[b].ticket) })
		for _, name := range names {
			if !yield(name, w.content[name]) {
				return
			}
		}
	}
}
