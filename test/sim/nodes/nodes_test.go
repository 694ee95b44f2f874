package nodes

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seeds   = flag.Int("sim.seeds", defaultSeeds, "how many seeds are simulated")
	first   = flag.Int("sim.first", 0, "the first seed")
	hours   = flag.Duration("sim.time", defaultTime, "how long trouble lasts in each, in simulated time")
	verbose = flag.Bool("sim.log", false, "write what the nodes log")
)

// Simulations make much garbage and keep little.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// C1, C2, C4, C5, P1, P3: three brokers in trouble, on every seed.
func TestSimulatedHours(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, planOf(uint64(seed), *hours))
		})
	}
}

func simulate(t *testing.T, p plan) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		y := newYard(p)
		y.play()
		report(t, y, time.Since(began))
	})
}

func report(t *testing.T, y *yard, took time.Duration) {
	t.Helper()
	j := y.judge
	t.Logf("seed %d (%s): %v, %v", y.plan.seed, y.plan.name, took.Round(time.Second), j.counted())
	if j.found == 0 {
		return
	}
	for _, problem := range j.problems {
		t.Error(problem)
	}
	t.Errorf("%d problems. What happened:\n  %s", j.found, strings.Join(j.trace, "\n  "))
	t.Errorf("to repeat: go test ./test/sim/nodes -run TestSimulatedHours -sim.first=%d -sim.seeds=1 -sim.time=%v -count=20", y.plan.seed, y.plan.lasts)
}
