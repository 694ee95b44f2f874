package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
)

// TestMain lets the test program, too, be started again as the canned peer or the bare client.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	other, err := beOther(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !other {
		os.Exit(m.Run())
	}
}
