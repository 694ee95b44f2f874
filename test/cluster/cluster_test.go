package cluster

import (
	"flag"
	"testing"
	"time"
)

var (
	fixed = flag.Bool("cluster", false, "the fixed run")
	chaos = flag.Duration("chaos", 0, "how long faults are drawn at random, over all kinds of yards")
	seed  = flag.Uint64("seed", 0, "of the random faults; zero: any")
	only  = flag.String("faults", "", "draw only faults whose names have this regular expression; empty: all")
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
	y := start(t)
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
