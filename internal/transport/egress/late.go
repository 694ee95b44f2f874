package egress

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/transport/share"
)

// A caller cannot leave a round trip that runs on its own goroutine. So where a request may go
// on after its time-out, another one runs it, and the caller waits for what comes first: the
// answer, or the timer, which hands the caller its time-out and the exchange over to the
// client. Only then is anything kept in a table: a request that is answered in time costs a
// channel and a change of goroutines.

// doAndLeave sends from another goroutine, so that the caller can leave when time is over.
func (c *Client) doAndLeave(ctx context.Context, r Request, seat *share.Holder, began time.Time) Answer {
	// What the caller cancels is only its own wait: a request that goes on outlives it.
	x := newExchange(context.WithoutCancel(ctx), c, r, seat, began)
	x.done = make(chan Answer, 1)
	if !c.assign(x) {
		x.end(errClosed)
		x.body.letGo()
		c.seats.Give(seat, 1)
		return Answer{Outcome: retry.Canceled, Began: began, Err: x.explain(errClosed)}
	}
	select {
	case a := <-x.done:
		return a
	case <-ctx.Done():
		x.end(context.Cause(ctx))
	case <-c.stopping.Done():
		x.end(errClosed)
	}
	return <-x.done
}

// runAndNotify runs the exchange and gives the answer to whoever waits for it.
func (x *exchange) runAndNotify() {
	x.start()
	a := x.run()
	x.mu.Lock()
	late, hook := x.late, x.hook
	x.mu.Unlock()
	if late == nil {
		x.done <- a
		return
	}
	x.client.mu.Lock()
	delete(x.client.late, x)
	x.client.mu.Unlock()
	late <- a
	close(late)
	if hook != nil {
		hook(a)
	}
}

// leaveLocked lets the caller go with a time-out. The body is no longer kept for repeats: once
// it is written its bytes are free.
func (x *exchange) leaveLocked() {
	x.late = make(chan Answer, 1)
	x.standUpLocked() // those who go on late are counted by themselves
	x.timer.Reset(x.ask.Late - x.ask.Timeout)
	x.body.letGo()
	x.done <- Answer{
		Outcome: retry.TimedOut, Began: x.began, Took: time.Since(x.began), Late: x.late, left: x,
		Err: x.explain(fmt.Errorf("%w within %v", errTimeout, x.ask.Timeout)),
	}
}

// keepLate takes over an exchange whose caller leaves, unless there are too many, or others wait for
// its connection.
func (c *Client) keepLate(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.share.Waiting() > 0 {
		return false
	}
	if len(c.late) >= c.cfg.MaxLate {
		c.cfg.Log.Debug("a request ends with its time: too many go on late already", "max", c.cfg.MaxLate)
		return false
	}
	c.late[x] = struct{}{}
	return true
}

// endLate ends what goes on late: others wait for its connections.
func (c *Client) endLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for x := range c.late {
		x.end(errTimeout)
	}
}
