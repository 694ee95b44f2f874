package egress

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/transport/share"
)

// Request is one.
type Request struct {
	Endpoint Endpoint
	// Route is the endpoint made ready; nil: Endpoint is made ready for this request.
	Route  *Route
	Method string
	// Header is the client's from here on. User-Agent is added where it has none, and
	// Authorization where the endpoint wants a token.
	Header http.Header
	// Body may still be read after Do has returned, be it that the request goes on or that the
	// other side answered before it had read everything. Release is called once, when it is read
	// no more; nil: nobody wants to know.
	Body    []byte
	Release func()
	// Timeout is for the answer's head; zero: 30 s. Who has to wait for a connection to be free waits
	// that long at most, and has all of it afterwards. Late is how much longer than Timeout in all
	// the request may go on in the background (3 min in all by default: Late is counted from the
	// beginning); zero: not at all.
	Timeout time.Duration
	Late    time.Duration
	// HeadBytes of the answer's body are kept; zero: 512; negative: all up to 64 KiB (for the
	// handshake).
	HeadBytes int
}

// Answer is what came of it.
type Answer struct {
	// Status is 0 where there was no answer; Outcome says why then.
	Status     int
	Outcome    retry.Outcome
	Header     http.Header
	Head       []byte
	RetryAfter time.Duration // from the header, seconds or date; zero: none
	Began      time.Time
	Took       time.Duration
	// Err is for people; nil where there was an answer.
	Err error
	// Late reports later how a request that timed out ended: at most one answer, then it is
	// closed. nil where it does not go on.
	Late <-chan Answer

	left *exchange // that goes on; nil where it does not
}

// Then has f called once with how a request that goes on ended: at once if that is known
// already, else by the goroutine that learns of it. It is for those who would have to start
// one to read Late; f has to be quick. It does nothing where Late is nil.
func (a Answer) Then(f func(Answer)) {
	x := a.left
	if x == nil {
		return
	}
	x.mu.Lock()
	ended := x.ended
	if !ended {
		x.hook = f
	}
	x.mu.Unlock()
	if ended {
		f(x.answer) // final
	}
}

// Do sends a request and waits for the head of the answer. Redirects are answers, not followed.
// Connections are kept and shared by endpoints with the same trust and certificate; HTTP/2
// where the other side has it. It never returns an error: the Answer has the outcome.
//
// A request may arrive twice: where a kept connection turns out to be closed before a byte of
// the answer came, it is sent once more over another. And where a token is refused that has
// been used before, it is sent once more with a new one.
//
// ResolutionError: the host's name has no address. SocketError: no connection, or it broke, or
// the address is not allowed. TimedOut: no answer in time. Canceled: ctx ended, or the client
// was closed, or no connection was free within the time: the yard may have so many only, and the
// endpoint has nothing to do with that. GenericError: the endpoint cannot be used, or no token could be got for it, which
// is no fault of its own.
func (c *Client) Do(ctx context.Context, r Request) Answer {
	began := time.Now()
	if r.Timeout <= 0 {
		r.Timeout = 30 * time.Second
	}
	var err error
	if c.stopping.Err() != nil {
		err = errClosed
	} else if r.Route == nil {
		r.Route, err = c.Route(r.Endpoint)
	}
	var seat *share.Holder
	if err == nil {
		seat, err = c.sit(ctx, &r)
	}
	if err != nil {
		if r.Release != nil {
			r.Release()
		}
		return Answer{Outcome: unsent(ctx, err), Began: began, Err: err}
	}
	if r.Late > r.Timeout {
		return c.doAndLeave(ctx, r, seat, began)
	}
	x := newExchange(ctx, c, r, seat, began)
	defer context.AfterFunc(c.stopping, func() { x.end(errClosed) })()
	x.start()
	return x.run()
}

// retryAfter reads Retry-After: seconds, or a date. Nonsense is none.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	const most = 365 * 24 * time.Hour
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), most))
	}
	return 0
}
