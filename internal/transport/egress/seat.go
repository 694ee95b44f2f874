package egress

import (
	"context"
	"errors"
	"time"
)

// A round trip takes a goroutine with a deep stack and all that a transport keeps of a request, some
// 25 KiB, also while it only waits for a connection. When an event goes to ten thousand endpoints at
// once that would be most of the yard's memory. So a request gets a seat first, and waits for it with
// nothing but what its caller has. Seats are shared out as connections are: an address that hangs ends up
// with half of them.

// minSeats is how many there are at least. It is more than connections where descriptors are few, because
// over HTTP/2 many requests share one.
const minSeats = 2048

// errNoSeat: there was none. It is no fault of the endpoint.
var errNoSeat = errors.New("too many requests to others were under way")

// sit waits for a seat for as long as a request waits for a connection. Errors: errNoSeat, errClosed, and
// the cause for which ctx has ended.
func (c *Client) sit(ctx context.Context, r *Request) (*holder, error) {
	if seat := c.seats.take(r.Route.url.Host); seat != nil {
		return seat, nil
	}
	w := c.seats.ask(r.Route.url.Host)
	patience := time.NewTimer(r.Timeout)
	defer patience.Stop()
	var err error
	select {
	case <-w.granted:
		return w.holder, nil
	case <-patience.C:
		err = errNoSeat
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.stopping.Done():
		err = errClosed
	}
	if !c.seats.withdraw(w) { // it was granted just now
		c.seats.give(w.holder, 1)
	}
	return nil, err
}

// standUpLocked gives the exchange's seat back.
func (x *exchange) standUpLocked() {
	if x.seat != nil {
		x.client.seats.give(x.seat, 1)
		x.seat = nil
	}
}
