package egress

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// A round trip takes a goroutine with a deep stack and all that a transport keeps of a request, some
// 25 KiB, also while it only waits for a connection. When an event goes to ten thousand endpoints at
// once that would be most of the yard's memory. So a request gets a seat first, and waits for it with
// nothing but what its caller has. Seats are shared out as connections are: an address that hangs ends up
// with half of them.

// minSeats is how many there are at least. It is more than connections where descriptors are few, because
// over HTTP/2 many requests share one.
const minSeats = 2048

// Seats is how many requests may be under way at once: more callers only wait.
func (c *Client) Seats() int { return c.seats.Limit() }

// errNoSeat: there was none. It is no fault of the endpoint.
var errNoSeat = errors.New("too many requests to others were under way")

// sit waits for a seat for as long as a request waits for a connection. Errors: errNoSeat, errClosed, and
// the cause for which ctx has ended.
func (c *Client) sit(ctx context.Context, r *Request) (*share.Holder, error) {
	if seat := c.seats.Take(r.Route.url.Host); seat != nil {
		return seat, nil
	}
	w := c.seats.Ask(r.Route.url.Host)
	patience := time.NewTimer(r.Timeout)
	defer patience.Stop()
	var err error
	select {
	case <-w.Granted():
		return w.Holder(), nil
	case <-patience.C:
		err = errNoSeat
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.stopping.Done():
		err = errClosed
	}
	if !c.seats.Withdraw(w) { // it was granted just now
		c.seats.Give(w.Holder(), 1)
	}
	return nil, err
}

// standUpLocked gives the exchange's seat back.
func (x *exchange) standUpLocked() {
	if x.seat != nil {
		x.client.seats.Give(x.seat, 1)
		x.seat = nil
	}
}
