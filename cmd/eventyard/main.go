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
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Once the first signal has been heard, the second one ends the process at once.
	context.AfterFunc(ctx, restore)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	os.Exit(report(os.Stderr, err))
}
