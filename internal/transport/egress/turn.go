package egress

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/transport/share"
)

// turn is how it stands with the connection of one request. Transports make connections apart from
// the requests that want them, without their contexts and beyond their ends: who dials finds the
// request's turn among the values of the context, and stops waiting when nobody wants it any more.
type turn struct {
	request <-chan struct{} // closed when the request's context ends
	over    chan struct{}   // closed when the round trip is over
	// waiting: there is no connection yet, and there are too many others.
	waiting atomic.Bool
	// sure: waiting ends with every connection, also with one that another request has left.
	sure bool
	// came is called when the wait has ended with a connection, or with leave to make one; nil:
	// nobody wants to know.
	came func()
}

type turnKey struct{}

func withTurn(ctx context.Context, came func()) (context.Context, *turn) {
	t := &turn{request: ctx.Done(), over: make(chan struct{}), came: came}
	return context.WithValue(ctx, turnKey{}, t), t
}

// traced has the transport tell of all connections.
func (t *turn) traced(ctx context.Context) context.Context {
	t.sure = true
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { t.proceed() }})
}

// proceed ends the wait.
func (t *turn) proceed() {
	if t.waiting.Swap(false) && t.came != nil {
		t.came()
	}
}

// sharing is a transport whose connections are of the client's share.
type sharing struct {
	*http.Transport
	share *share.Share
}

// RoundTrip lets its connection go afterwards if somebody waits who has less than is fair.
func (s *sharing) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil {
		alone := httptrace.ContextClientTrace(ctx) == nil // else somebody watches who knows what it means
		if ctx, t = withTurn(ctx, nil); alone {
			ctx = t.traced(ctx)
		}
		r = r.WithContext(ctx)
	}
	defer close(t.over)
	if s.share.Tight() && !r.Close {
		r = r.WithContext(ctx) // a copy: the request is not ours to change
		r.Close = true
	}
	response, err := s.Transport.RoundTrip(r)
	if err != nil && t.sure && t.waiting.Load() {
		err = fmt.Errorf("%w: %w", errShort, err)
	}
	return response, err
}
