// Command peers races a yard against other servers on the same machine, and prints rates, latencies, memory and their
// ratios as Markdown.
//
//	go run ./test/bench/peers                            all of it, in less than half an hour
//	go run ./test/bench/peers -quick                     a smoke test
//	go run ./test/bench/peers -only kafka,start          some chapters
//	go run ./test/bench/peers -peers yard,nats           some servers
//	go run ./test/bench/peers -write docs/benchmarks.md  and keep the result
//
// A server that cannot be had on this machine is named in the report, and left out. The program judges nothing: it fails
// when something does not work, never because something is slow. Servers that are compared stand side by side and take
// turns in random order, so that noise on the machine hits all of them, and every ratio is taken inside a round.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// Servers that are programs of ours are this program, started again with one of these in its environment.
const (
	sinkCommand = "EVENTYARD_PEERS_SINK"      // the address to listen at
	sinkTLS     = "EVENTYARD_PEERS_SINK_TLS"  // that for TLS
	sinkKeys    = "EVENTYARD_PEERS_SINK_KEYS" // the file of its certificate and key
	natsCommand = "EVENTYARD_PEERS_NATS"      // the server's configuration file
)

// beOther makes this process a server, if it was started to be one.
func beOther(ctx context.Context) (bool, error) {
	if address := os.Getenv(sinkCommand); address != "" {
		plain, err := net.Listen("tcp", address)
		if err != nil {
			return true, err
		}
		secure, err := listenTLS(os.Getenv(sinkTLS), os.Getenv(sinkKeys))
		if err != nil {
			return true, errors.Join(err, plain.Close())
		}
		return true, serveSink(ctx, plain, secure)
	}
	if config := os.Getenv(natsCommand); config != "" {
		return true, serveNATS(ctx, config)
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
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}
