package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
)

var (
	seeds = flag.Int("sim.seeds", 200, "how many seeds are simulated")
	first = flag.Int("sim.first", 0, "the first seed")
	hours = flag.Duration("sim.time", defaultTime, "how long trouble lasts in each, in simulated time")
)

// Simulations make much garbage and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// P1, P2, P3, P7, P9, P11: simulated hours of trouble, on every seed.
func TestSimulatedHours(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		p := planOf(uint64(seed))
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, p)
		})
	}
}

func simulate(t *testing.T, p plan) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, p)
		d := w.play()
		report(t, p, d)
	})
}

func report(t *testing.T, p plan, d *director) {
	t.Helper()
	l := d.ledger
	t.Logf("seed %d (%s, greedy %v, watch %v, host %v): %d runs, %d acquisitions, %d calls, %d repeats, %d while another's was proven",
		p.seed, p.name, p.greedy, p.watch, p.host, d.runs, l.moves, l.calls, l.repeats, l.doubles)
	if len(l.broken) == 0 {
		return
	}
	for _, b := range l.broken {
		t.Errorf("%s:\n  %s", b.rule, b.text)
	}
	t.Errorf("what happened to the group:\n  %s", strings.Join(d.trace, "\n  "))
	t.Errorf("to repeat: go test ./test/sim -run TestSimulatedHours -sim.first=%d -sim.seeds=1 -sim.time=%v -count=20", p.seed, p.lasts)
}
