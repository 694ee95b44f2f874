package functions

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
)

// Waits of a worker end in three ways: with what is waited for, with circuit.ErrLeaving when the
// partition is to be given up in good order, or with the context's cause when it is taken away.

// wait waits for a channel.
func wait(ctx context.Context, leaving, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	default:
	}
	select {
	case <-what:
		return nil
	case <-leaving:
		return circuit.ErrLeaving
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acquire takes a token.
func acquire(ctx context.Context, leaving <-chan struct{}, token chan<- struct{}) error {
	select {
	case token <- struct{}{}:
		return nil
	default:
	}
	select {
	case token <- struct{}{}:
		return nil
	case <-leaving:
		return circuit.ErrLeaving
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleep waits for a while.
func sleep(ctx context.Context, leaving <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-leaving:
		return circuit.ErrLeaving
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// backoff is what is waited after so many failures in a row, from 1: 100 ms, doubled each time up
// to 30 s, with up to a quarter taken off at random so that instances do not march in step.
func backoff(failures int) time.Duration {
	d := 100 * time.Millisecond << min(failures-1, 9)
	d = min(d, 30*time.Second)
	return d - rand.N(d/4+1)
}
