package cluster

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventyard/eventyard/test/parts"
)

var (
	fixed = flag.Bool("cluster", false, "the fixed run")
	chaos = flag.Duration("chaos", 0, "how long faults are drawn at random")
	seed  = flag.Uint64("seed", 0, "of the random faults; zero: any")
)

// C1 to C5, C7: whatever happens to a node or to a server, no acknowledged event is lost, each sender's
// are in order, those of idempotent producers are there once, and all nodes give the same numbers.
// Webhooks and functions get each event at least once, and the higher epoch alone receives, which
// porcupine finds in the history of all receivers. All goes on by itself, and an official client that
// may try again sees no error.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	if !*fixed {
		t.Skip("make cluster has it, which is a line of make test: it wants the machine for itself")
	}
	y := start(t, nil)
	y.pull(t)
	y.deadLetters(t)
	r := y.begin(t, "orders")
	r.epochs.race(t)
	for _, f := range []fault{
		killServer(0), freezeServer(1, 4*time.Second), loseNode(2), freezeNode(0, 4*time.Second), withoutMajority(2, 6*time.Second),
		rollNodes(), rollServers(),
	} {
		r.endure(t, f)
	}
	r.end(t)
}

// C1 to C5, C7: the same with faults at random, among them cuts of the network, the loss of all
// servers at once and a minute without a majority of them.
func TestChaos(t *testing.T) { endureAtRandom(t, 2*size, start, draw) }

// endureAtRandom has a yard on that many hosts endure faults for the time of the flag.
func endureAtRandom(t *testing.T, hosts int, start func(testing.TB, *parts.Network) *yard, draw func(*rand.Rand) fault) {
	t.Helper()
	if *chaos == 0 {
		t.Skip("make chaos has it")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	y := start(t, parts.NewNetwork(t, hosts))
	round := 0
	for end := time.Now().Add(*chaos); time.Now().Before(end) && !t.Failed(); {
		round++
		r := y.begin(t, fmt.Sprintf("orders%d", round))
		r.epochs.race(t)
		for range 4 {
			r.endure(t, draw(random))
		}
		r.end(t)
		r.remove(t)
	}
}
