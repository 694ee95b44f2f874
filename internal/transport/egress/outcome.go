package egress

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/eventyard/eventyard/internal/grid/retry"
)

// Why an exchange ended before it was done.
var (
	errTimeout = errors.New("no answer")
	errBody    = errors.New("the answer's body takes too long")
	errClosed  = errors.New("the client is closed")
	errLeft    = errors.New("the time is over, and it is not sent again")
)

// errToken marks that no token could be got.
var errToken = errors.New("no token for the endpoint")

// unsent names what was wrong where it did not come to a request.
func unsent(ctx context.Context, err error) retry.Outcome {
	switch {
	case errors.Is(err, errClosed), errors.Is(err, errNoSeat), ctx.Err() != nil:
		return retry.Canceled
	case errors.Is(err, ErrForbidden):
		return retry.SocketError
	}
	return retry.GenericError
}

// outcomeOf names what was wrong where there is no answer. What we ended ourselves shows as many
// kinds of errors; the context knows better.
func outcomeOf(ctx context.Context, err error) retry.Outcome {
	switch cause := context.Cause(ctx); {
	case cause == errTimeout:
		return retry.TimedOut
	case cause != nil: // errShort, too
		return retry.Canceled
	}
	var dns *net.DNSError
	switch {
	case errors.Is(err, errClosed), errors.Is(err, errShort), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return retry.Canceled
	case errors.Is(err, errToken): // whatever was wrong, it was not with the endpoint
		return retry.GenericError
	case errors.Is(err, ErrForbidden):
		return retry.SocketError
	case errors.As(err, &dns):
		return retry.ResolutionError
	}
	return retry.SocketError
}
