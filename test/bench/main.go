// Command bench measures the disk engine and the AMQP listener beside what the same machine
// does raw and beside an embedded NATS JetStream server, in one run, and prints the
// figures and their ratios as Markdown. With -cluster it measures the engine of several
// nodes, beside plain publishing to the same three NATS servers.
//
//	go run ./test/bench                              all of it, a few minutes
//	go run ./test/bench -quick                       a smoke test
//	go run ./test/bench -only append-always,singles  some of it
//	go run ./test/bench -write docs/benchmarks.md    and keep the result
//	go run ./test/bench -cluster                     several nodes, a few minutes
//
// It judges nothing: it fails when something does not work, never because something is
// slow. Compared things take turns, round by round, so that noise on the machine hits
// all of them, and every ratio is taken inside a round.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// asPeer tells whether this process is to be the canned peer, and with what events.
func asPeer() (eventBytes int, ok bool) {
	n, err := strconv.Atoi(os.Getenv(peerCommand))
	return n, err == nil
}

// beOther makes this process the other side of a comparison, if it was started to be that.
func beOther(ctx context.Context) (bool, error) {
	if eventBytes, ok := asPeer(); ok {
		return true, runPeer(ctx, eventBytes)
	}
	if os.Getenv(posterCommand) != "" {
		return true, bePoster(ctx)
	}
	if config := os.Getenv(natsCommand); config != "" {
		return true, beNATS(config)
	}
	return false, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	other, err := beOther(ctx)
	if !other {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
