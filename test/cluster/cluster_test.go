package cluster

import (
	"flag"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	fixed   = flag.Bool("cluster", false, "the fixed run")
	proxied = flag.Bool("proxies", false, "cut off by proxies in the fixed run, also where network namespaces can be made")
	chaos   = flag.Duration("chaos", 0, "how long faults are drawn at random, over all kinds of yards")
	seed    = flag.Uint64("seed", 0, "of the random faults; zero: any")
	only    = flag.String("faults", "", "draw only faults whose names have this regular expression; empty: all")
)

// C1 to C5, C7: whatever happens to a node or to a server, no acknowledged event is lost, each sender's
// are in order, those of idempotent producers are there once, and all nodes give the same numbers.
// Webhooks, functions and the processor get each event at least once, nothing moves a cursor or a checkpoint under an
// epoch when a higher one has begun, and the higher epoch alone receives: porcupine finds an order of all that
// receivers, checkpoints, appends and reads were told. All goes on by itself, and an official client that may try
// again sees no error; one that may not is told, also while there is no majority for longer than a node waits, what
// clients try again after.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	if !*fixed {
		t.Skip("make cluster has it, which is a line of make test: it wants the machine for itself")
	}
	y := startOn(t, network(t, 2*size), size)
	y.pull(t)
	y.deadLetters(t)
	r := y.begin(t, "orders")
	r.epochs.race(t)
	faults := []fault{killLeader(), freezeServer(1, 4*time.Second), loseNode(2), freezeNode(0, 4*time.Second), withoutMajority(2, time.Minute),
		killServers(several{0, size, size}), killAllNodes()}
	if y.network != nil {
		faults = append(faults, cutServer(0, 6*time.Second), isolateNode(1))
	}
	for _, f := range faults {
		r.endure(t, f)
	}
	r.end(t)
	testkit.That(t, r.raised > 0, "no cursor has passed from an epoch to a higher one: this proves nothing")

	y.roll(t, rollNodes(), rollServers())
	testkit.Equal(t, len(y.scrub(t)), 0, "findings of a scrub: no disk was full")
}

// roll has the yard endure planned restarts, which lose and repeat nothing. Processors reach the nodes through a
// balancer, as clients do that are to go on elsewhere: one whose only node is away for longer than a lease cannot have a
// checkpoint saved for what it has handled. C1, C4
func (y *yard) roll(t *testing.T, restarts ...fault) {
	t.Helper()
	y.balance(t)
	r := y.begin(t, "rolled")
	for _, f := range restarts {
		r.endure(t, f)
	}
	r.end(t)
	r.repeatedNothing(t)
}
