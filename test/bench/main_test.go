package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
)

// TestMain lets the test program, too, be started again as the canned peer.
func TestMain(m *testing.M) {
	if eventBytes, ok := asPeer(); ok {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if err := runPeer(ctx, eventBytes); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
