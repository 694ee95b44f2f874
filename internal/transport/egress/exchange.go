package egress

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/transport/share"
)

const (
	// drainBytes and drainTime are what we read of an answer beyond its head, so that the
	// connection can be used again. Longer bodies cost the connection.
	drainBytes = 64 << 10
	drainTime  = time.Second
	// headBytes is kept of a body unless somebody asks for less or more.
	headBytes = 512
)

// blank is what requests are made of: WithContext is the only way to give them a context.
var blank = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// exchange is one request on its way. One timer watches over it: first for the answer's head,
// then for its body; and if the caller leaves, for the late end.
type exchange struct {
	client *Client
	ask    Request
	body   payload
	began  time.Time
	ctx    context.Context // of the request as it is sent; end ends it
	end    context.CancelCauseFunc
	// done takes the caller's answer; nil where the caller runs the exchange itself.
	done chan Answer

	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu
	headed bool          // guarded by mu: the head of the answer is there
	late   chan Answer   // guarded by mu: not nil once the caller has left
	ended  bool          // guarded by mu: answer is final
	answer Answer        // guarded by mu
	hook   func(Answer)  // guarded by mu: who gets a late answer
	turn   *turn         // guarded by mu: of the present round trip
	seat   *share.Holder // guarded by mu: nil once it was given back
}

// newExchange takes the request over.
func newExchange(ctx context.Context, c *Client, r Request, seat *share.Holder, began time.Time) *exchange {
	x := &exchange{client: c, ask: r, seat: seat, began: began}
	x.body.hold(r.Body, r.Release)
	x.ctx, x.end = context.WithCancelCause(ctx)
	if x.ask.Header == nil {
		x.ask.Header = http.Header{}
	}
	if _, has := x.ask.Header["User-Agent"]; !has {
		x.ask.Header["User-Agent"] = []string{c.cfg.UserAgent}
	}
	// Without a value it is not sent, and shows the transport that to repeat the request on
	// another connection does no harm.
	if _, has := x.ask.Header["Idempotency-Key"]; !has {
		x.ask.Header["Idempotency-Key"] = nil
	}
	return x
}

// start sets the time for the answer's head.
func (x *exchange) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(x.ask.Timeout, x.overdue)
}

// overdue is called by the timer.
func (x *exchange) overdue() {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.ended:
	case x.headed:
		x.end(errBody)
	case x.turn != nil && x.turn.waiting.Load():
		x.end(errShort)
	case x.late == nil && x.done != nil && x.client.keepLate(x):
		x.leaveLocked()
	default:
		x.end(errTimeout)
	}
}

// resume sets the time anew: it was spent on a wait for a connection.
func (x *exchange) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended && !x.headed && x.late == nil {
		x.timer.Reset(x.ask.Timeout)
	}
}

// run sends the request and reads the answer. It ends when the context does.
func (x *exchange) run() Answer {
	response, err := x.send()
	a := Answer{Began: x.began, Took: time.Since(x.began)}
	if err != nil {
		a.Outcome, a.Err = outcomeOf(x.ctx, err), x.explain(err)
	} else {
		a.Status, a.Header = response.StatusCode, response.Header
		a.Outcome = retry.Classify(a.Status)
		a.RetryAfter = retryAfter(a.Header, x.began.Add(a.Took))
		// The body has a little time of its own, or where all of it is wanted what is left of the
		// request's.
		x.mu.Lock()
		x.headed = true
		if x.ask.HeadBytes >= 0 || x.late != nil {
			x.timer.Reset(drainTime)
		}
		x.mu.Unlock()
		a.Head = x.read(response)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer.Stop()
	x.standUpLocked()
	x.ended, x.answer = true, a
	x.end(nil)
	if x.late == nil { // else the body was let go when the caller left
		x.body.letGo()
	}
	return a
}

// send gives the answer's head. A token that was in use before and is refused may have been
// revoked or have expired early: then a new one is tried, once.
func (x *exchange) send() (*http.Response, error) {
	purse := x.ask.Route.purse
	if purse == nil {
		return x.post(x.ask.Header)
	}
	token, fresh, err := purse.take(x.ctx)
	if err != nil {
		return nil, err
	}
	response, err := x.post(authorized(x.ask.Header, token))
	if err != nil || response.StatusCode != http.StatusUnauthorized || fresh {
		return response, err
	}
	purse.drop(token)
	if token, _, err = purse.take(x.ctx); err != nil {
		return response, nil // what the endpoint said is the better news
	}
	response.Body.Close() // to read it, so that the connection could be used again, might take for ever
	return x.post(authorized(x.ask.Header, token))
}

func authorized(h http.Header, token string) http.Header {
	h = maps.Clone(h)
	h["Authorization"] = []string{token}
	return h
}

// post is one round trip.
func (x *exchange) post(header http.Header) (*http.Response, error) {
	ctx, turn := withTurn(x.ctx, x.resume)
	x.mu.Lock()
	x.turn = turn
	x.mu.Unlock()
	r := blank.WithContext(turn.traced(ctx))
	r.Method, r.URL, r.Header = x.ask.Method, x.ask.Route.url, header
	if len(x.body.bytes) > 0 {
		body, err := x.body.open()
		if err != nil {
			return nil, err
		}
		r.Body, r.GetBody, r.ContentLength = body, x.body.open, int64(len(x.body.bytes))
	}
	return x.ask.Route.transport.RoundTrip(r)
}

// read gives the beginning of the body, and reads the rest as far as that is cheap.
func (x *exchange) read(response *http.Response) []byte {
	defer response.Body.Close()
	if response.Body == http.NoBody || response.ContentLength == 0 {
		return nil
	}
	size := x.ask.HeadBytes
	switch {
	case size < 0:
		size = drainBytes
	case size == 0:
		size = headBytes
	}
	if response.ContentLength > 0 {
		size = int(min(int64(size), response.ContentLength))
	}
	head := make([]byte, size+1) // the byte too many finds the end
	n, err := io.ReadFull(response.Body, head)
	if err == nil {
		io.CopyN(io.Discard, response.Body, drainBytes)
	}
	return head[:min(n, size)]
}

// explain says what we were doing. The path and the query are left out: secrets are kept there.
func (x *exchange) explain(err error) error {
	if cause := context.Cause(x.ctx); cause == errTimeout || cause == errShort {
		err = fmt.Errorf("%w within %v", cause, x.ask.Timeout)
	}
	u := x.ask.Route.url
	return fmt.Errorf("%s %s://%s: %w", x.ask.Method, u.Scheme, u.Host, inBrief(err))
}
