package cluster

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var (
	chaos = flag.Duration("chaos", 0, "how long faults are drawn at random; zero: the fixed run")
	seed  = flag.Uint64("seed", 0, "of the random faults; zero: any")
)

// C1, C2, C4: whatever happens to a node or to a server, no acknowledged event is lost, each sender's
// are in order, those of idempotent producers are there once, and all nodes give the same numbers.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	if *chaos > 0 {
		t.Skip("random faults take its place")
	}
	y := start(t, nil)
	y.endure(t, "orders", []fault{killServer(0), freezeServer(1, 4*time.Second), killNode(2), freezeNode(0, 4*time.Second), restartNode(1)})
}

// C1, C2, C4: the same with faults at random, among them cuts of the network and the loss of all
// servers at once.
func TestChaos(t *testing.T) {
	if *chaos == 0 {
		t.Skip("make chaos has it")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	y := start(t, parts.NewNetwork(t, 2*size))
	round := 0
	for end := time.Now().Add(*chaos); time.Now().Before(end) && !t.Failed(); {
		round++
		y.endure(t, fmt.Sprintf("orders%d", round), []fault{draw(random), draw(random), draw(random)})
	}
}

// endure has a load run through the faults, and judges what is there in the end.
func (y *yard) endure(t *testing.T, hub string, faults []fault) {
	t.Helper()
	l := y.run(t, hub)
	l.goesOn(t, "before any fault")
	for _, f := range faults {
		f.begin(t, y)
		time.Sleep(f.lasts) // a fault has a length; nothing is waited for
		f.end(t, y)
		l.goesOn(t, "after "+f.name)
		t.Logf("%s: the longest pause of all senders was %v", f.name, l.pausedFor().Round(time.Millisecond))
	}
	l.stop()
	complaints := judge(l.records, l.read(t))
	for _, c := range complaints {
		t.Error(c)
	}
	t.Logf("%d events acknowledged", l.acknowledged())
}

// goesOn waits until batches are acknowledged again.
func (l *load) goesOn(t *testing.T, when string) {
	t.Helper()
	before := l.count()
	testkit.Eventually(t, "nothing is acknowledged any more "+when, func() bool { return l.count() > before+2*senders })
}
