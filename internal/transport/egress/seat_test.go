package egress

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/share"
)

// to asks an address with as much time as it takes, or less.
func to(c *Client, host string, timeout time.Duration) Answer {
	return c.Do(context.Background(), Request{Endpoint: Endpoint{URL: "http://" + host + "/"}, Method: "POST", Timeout: timeout})
}

// R3: requests beyond the seats wait; an address that hangs has half of them, and others are served; who
// waits for too long is told so, and that it is no fault of the endpoint.
func TestRequestsWaitForASeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}})
		c.seats = share.New(4, 1)
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { testkit.Equal(t, to(c, "hangs.example", time.Hour).Outcome, retry.Delivered) })
		}
		synctest.Wait()
		testkit.Equal(t, c.seats.Open(), 2, "seats of an address that hangs")
		all.Go(func() {
			testkit.Equal(t, to(c, "well.example", time.Hour).Outcome, retry.Delivered)
			testkit.Equal(t, time.Since(began), time.Minute, "until another is served")
		})
		a := to(c, "hangs.example", time.Second)
		testkit.Equal(t, a.Outcome, retry.Canceled)
		testkit.ErrorIs(t, a.Err, errNoSeat)
		all.Wait()
		testkit.Equal(t, time.Since(began), 2*time.Minute, "until all are served")
		testkit.Equal(t, c.seats.Open(), 0, "seats at the end")
	})
}

// R3: a caller that leaves gives its seat back, whether it waits for it, or for an answer.
func TestWhoLeavesGivesTheSeatBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}})
		c.seats = share.New(1, 1)
		first := c.Do(t.Context(), late())
		testkit.Equal(t, first.Outcome, retry.TimedOut)
		testkit.Equal(t, c.seats.Open(), 0, "seats once the caller has left")
		go to(c, "hangs.example", time.Hour)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.Equal(t, c.Do(ctx, late()).Outcome, retry.Canceled)
		testkit.Equal(t, (<-first.Late).Outcome, retry.Delivered)
		synctest.Wait()
		testkit.Equal(t, c.seats.Open(), 1, "seats of who is under way")
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, c.seats.Open(), 0, "seats at the end")
	})
}

// R3: ten thousand requests at once take no more goroutines than there are seats, besides their callers'.
func TestABurstTakesAsManyWorkersAsSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}})
		before := runtime.NumGoroutine()
		var all sync.WaitGroup
		for range 10_000 {
			all.Go(func() {
				r := late()
				r.Timeout, r.Late = time.Hour, 2*time.Hour
				testkit.Equal(t, c.Do(t.Context(), r).Outcome, retry.Delivered)
			})
		}
		synctest.Wait()
		workers := runtime.NumGoroutine() - before - 10_000
		testkit.That(t, workers <= minSeats, "%d workers", workers)
		all.Wait()
	})
}
