// Package webhook carries batches of events to where subscriptions want them: it writes the
// request that receivers expect (body, headers, signature), sends it, and reports what came of it;
// or publishes into a hub. It decides nothing and keeps nothing.
package webhook

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/tracing"
)

// Broker is what a sender needs of the broker, for hub endpoints.
type Broker interface {
	Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error)
}

// Config is what a sender works with.
type Config struct {
	Client *egress.Client
	Broker Broker
	// Origin is WebHook-Request-Origin. Timeout is the yard's default (zero: 30 s), Late how long
	// in all a request may go on (zero: 3 min; negative: not beyond Timeout).
	Origin  string
	Timeout time.Duration
	Late    time.Duration
	// Tracer makes spans of deliveries; nil: there are none.
	Tracer tracing.Tracer
}

// Sender carries batches. All methods may be called by many goroutines at once.
type Sender struct {
	cfg    Config
	usuals sync.Map // of http.Header, by usualKind
}

func New(cfg Config) *Sender {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Late = cmp.Or(cfg.Late, 3*time.Minute)
	return &Sender{cfg: cfg}
}

// Result is what came of one delivery: the same for all its events.
type Result struct {
	Outcome    retry.Outcome
	Status     int
	RetryAfter time.Duration
	Began      time.Time
	Took       time.Duration
	// Head is the beginning of the answer, Err why there was none, both for people.
	Head []byte
	Err  string
	// Disable and Abort: the receiver asked for no more events at all (webhook-delivery: disable,
	// or 410 where the subscription takes that for it), or no more of this one (abort-message).
	Disable, Abort bool
	// Untried: a quota of the yard's own refused it, which is no attempt at a delivery.
	Untried bool
	// Late receives how a delivery that timed out ended: one result, then it is closed. nil where
	// it does not go on.
	Late <-chan Result
}

// Deliver sends a batch: at least one pending delivery, all of one Group, within the bounds, one
// alone where it is larger. It returns when the answer's head is there, or its time is over, or ctx
// ends. Nothing of the batch is looked at after that.
//
// An event that cannot be written in the schema asked for is a BadRequest of our own: it will
// never do; one that was passed on too often is LoopDetected. In a batch it is PayloadTooLarge, as
// of a batch that is to be taken apart, so that it takes no other with it.
func (c *Sender) Deliver(ctx context.Context, o *Order, batch []*pending.Delivery) Result {
	if c.cfg.Tracer == nil {
		return c.deliver(ctx, o, batch)
	}
	return c.deliverTraced(ctx, o, batch)
}

func (c *Sender) deliver(ctx context.Context, o *Order, batch []*pending.Delivery) Result {
	if slices.ContainsFunc(batch, func(p *pending.Delivery) bool { return p.Hops >= hops.Max }) {
		return undeliverable(retry.LoopDetected, hops.Advice, time.Now(), len(batch))
	}
	if o.hub != "" {
		return c.publish(ctx, o, batch)
	}
	began := time.Now()
	w := newWriter()
	if c.cfg.Tracer != nil {
		w.trace = tracing.Of(ctx)
	}
	header, err := w.request(o, batch, began)
	if err != nil {
		w.free()
		return undeliverable(retry.BadRequest, err.Error(), began, len(batch))
	}
	return o.result(c.cfg.Client.Do(ctx, egress.Request{
		Endpoint: o.endpoint, Route: o.route, Method: http.MethodPost, Header: header,
		Body: w.body, Release: w.free, Timeout: o.timeout, Late: o.late,
	}))
}

func undeliverable(outcome retry.Outcome, why string, began time.Time, events int) Result {
	if events > 1 {
		outcome = retry.PayloadTooLarge
	}
	return Result{Outcome: outcome, Began: began, Err: why}
}

// result reads what a receiver answered.
func (o *Order) result(a egress.Answer) Result {
	r := Result{Outcome: a.Outcome, Status: a.Status, RetryAfter: a.RetryAfter, Began: a.Began, Took: a.Took, Head: a.Head}
	if a.Err != nil {
		r.Err = a.Err.Error()
	}
	wish := strings.ToLower(strings.TrimSpace(a.Header.Get("Webhook-Delivery")))
	r.Disable = wish == "disable" || a.Status == http.StatusGone && o.Subscription.DisableOnGone
	r.Abort = wish == "abort-message" && a.Outcome != retry.Delivered
	if a.Late != nil {
		late := make(chan Result, 1)
		a.Then(func(a egress.Answer) {
			late <- o.result(a)
			close(late)
		})
		r.Late = late
	}
	return r
}
