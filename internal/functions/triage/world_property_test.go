package triage

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// draw draws a world.
func draw(t *rapid.T) *world {
	w := &world{
		policy:     Policy{Retries: rapid.IntRange(-1, 5).Draw(t, "retries")},
		style:      style(rapid.IntRange(0, int(styles)-1).Draw(t, "style")),
		lanes:      rapid.IntRange(1, 3).Draw(t, "lanes"),
		maxBatch:   rapid.IntRange(1, 30).Draw(t, "batch"),
		even:       rapid.Bool().Draw(t, "even"),
		lazy:       rapid.Bool().Draw(t, "lazy"),
		crashes:    rapid.IntRange(0, 40).Draw(t, "crashes"),
		stops:      rapid.IntRange(0, 5).Draw(t, "stops"),
		checkpoint: -1,
	}
	bad := rapid.IntRange(1, 10).Draw(t, "one of so many is not good")
	for range rapid.IntRange(1, 30).Draw(t, "events") {
		ev := &happening{key: rapid.IntRange(0, 3).Draw(t, "key")}
		if rapid.IntRange(1, bad).Draw(t, "bad") == bad {
			ev.nature = nature(rapid.IntRange(0, int(natures)-1).Draw(t, "nature"))
		}
		if w.policy.Retries < 0 && ev.nature == guilty {
			ev.nature = toxic // for ever would be for ever
		}
		if ev.nature == flaky || ev.nature == busy {
			ev.left = max(w.policy.Retries, 0)
		}
		w.events = append(w.events, ev)
	}
	w.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	return w
}

// must runs a world and tells what was broken.
func must(t *rapid.T, w *world) {
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(broken)
			if !ok {
				panic(r)
			}
			t.Fatalf("%s\n%s", b, strings.Join(w.log, "\n"))
		}
	}()
	w.run()
}

// F2, F3, F4: whatever fails or dies, and whenever, everything ends; what is innocent is handled,
// in order, what is guilty is put away once, and calls and deaths are bounded.
func TestEverythingEndsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		crashes, stops := w.crashes, w.stops
		must(t, w)
		bad, deadly := 0, 0
		for _, ev := range w.events {
			if ev.nature != good {
				bad++
			}
			if ev.nature == killer {
				deadly++
			}
		}
		// A killer is found after so many deaths: those before there is suspicion, those of the
		// whole, one for each time it is divided, those alone. Each crash may make that begin anew.
		perKiller := 2*stalls + w.policy.deaths() + 5 + aloneDeaths
		if most := deadly * perKiller * (1 + crashes + stops); w.deaths > most {
			t.Errorf("%d deaths of %d killers, at most %d", w.deaths, deadly, most)
		}
		lives := 1 + crashes + stops + w.deaths
		if most := lives*len(w.events) + bad*(max(w.policy.Retries, 5)+1+2*5)*(1+crashes+stops+deadly); w.calls > most {
			t.Errorf("%d calls for %d events, %d of them bad, in %d lives, at most %d", w.calls, len(w.events), bad, lives, most)
		}
	})
}

// P7, F4: an operator may move the checkpoint at any time. Whatever was under way, no poison event
// is lost and no innocent event is put away.
func TestCheckpointsMayBeMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		w.moves = rapid.IntRange(1, 6).Draw(t, "moves")
		must(t, w)
	})
}

// F2: a crash loop with nothing recorded ends with exactly the killer away: three deaths until
// there is suspicion, three of the whole batch, one for each time that more than one are left,
// three alone.
func TestACrashLoopEnds(t *testing.T) {
	for _, style := range []style{wholeBatch, results, oneByOne} {
		for at := 0; at < 100; at += 9 {
			w := &world{style: style, lanes: 1, maxBatch: 100, even: true, checkpoint: -1, random: rand.New(rand.NewPCG(1, uint64(at)))}
			for range 100 {
				w.events = append(w.events, &happening{})
			}
			w.events[at].nature = killer
			w.run()
			if w.deaths < 3+3+5+3 || w.deaths > 3+3+6+3 {
				t.Errorf("killer %d: %d deaths\n%s", at, w.deaths, strings.Join(w.log, "\n"))
			}
		}
	}
}
