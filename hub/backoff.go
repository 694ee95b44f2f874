package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// busyPause is what a hub that is busy expects of its clients.
const busyPause = 4 * time.Second

// backoff is the delay before the next attempt: doubled each time, and jittered, so that
// those who lost the hub together do not come back together.
type backoff struct {
	retry Retry
	next  time.Duration
}

// delay gives the next delay, between a half and the whole of what is due.
func (b *backoff) delay(busy bool) time.Duration {
	b.next = min(max(2*b.next, b.retry.First), b.retry.Max)
	due := b.next
	if busy {
		due = max(due, min(busyPause, b.retry.Max))
	}
	return due/2 + rand.N(due/2+1)
}

// reset is for a success.
func (b *backoff) reset() { b.next = 0 }

// retry does something until it succeeds, cannot succeed, or has been tried often enough.
// Errors are fit for callers.
func (c *Client) retry(ctx context.Context, while task, do func(context.Context) error) error {
	wait := backoff{retry: c.cfg.Retry}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ended(ctx, err)
		}
		v := judge(err, while)
		if c.life.ended() {
			return ErrClosed
		}
		if !v.passing || attempt >= c.cfg.Retry.Attempts {
			return v.err
		}
		c.cfg.Log.Debug("trying again", "namespace", c.at.host, "attempt", attempt, "error", v.err)
		switch err := c.pause(ctx, wait.delay(v.busy), nil); {
		case errors.Is(err, ErrClosed):
			return err
		case err != nil:
			return ended(ctx, v.err)
		}
	}
}

// attempt does it once, within its time.
func (c *Client) attempt(ctx context.Context, do func(context.Context) error) error {
	bound, cancel := c.bind(ctx)
	defer cancel()
	err := do(bound)
	if ctx.Err() == nil {
		err = c.unanswered(bound, err)
	}
	return err
}

// unanswered is the error of an attempt that ran out of time, whatever error that took: callers
// must not take it for the end of their own context.
func (c *Client) unanswered(bound context.Context, err error) error {
	if deadline, ok := bound.Deadline(); err == nil || !ok || time.Now().Before(deadline) {
		return err
	}
	return fmt.Errorf("no answer within %s", c.cfg.Retry.Timeout)
}

// ended is the error of a call whose context has ended: the context's, and what went wrong
// before if something did.
func ended(ctx context.Context, last error) error {
	if errors.Is(last, context.Canceled) || errors.Is(last, context.DeadlineExceeded) {
		return ctx.Err()
	}
	return fmt.Errorf("%w, after: %v", ctx.Err(), judge(last, asking).err)
}

// pause waits, unless the context ends or the client, or what else may, is closed.
func (c *Client) pause(ctx context.Context, d time.Duration, also <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.over:
		return ErrClosed
	case <-also:
		return ErrClosed
	}
}
