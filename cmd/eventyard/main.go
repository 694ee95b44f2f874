// Command eventyard runs a yard and talks to one: it serves hubs, and it creates
// them, sends to them and reads from them over HTTP.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	go func() { // for as long as the process lives
		<-heard
		signal.Stop(heard) // the next one ends the process at once
		cancel()
	}()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	code := report(os.Stderr, err)
	if code == exitOK && ctx.Err() != nil && !servesUntilStopped(os.Args[1:]) {
		code = exitInterrupted
	}
	os.Exit(code)
}
