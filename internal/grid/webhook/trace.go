package webhook

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/tracing"
)

// deliverTraced makes a span of a delivery. It belongs to the trace of the first event that has one, is
// linked to those of the others, and is what the request says that it is of.
func (c *Sender) deliverTraced(ctx context.Context, o *Order, batch []*pending.Delivery) Result {
	var g tracing.Gathering
	attempts := 0
	for _, p := range batch {
		g.Add(p.TraceContext())
		attempts = max(attempts, p.Attempts)
	}
	ctx, span := g.Begin(ctx, c.cfg.Tracer, tracing.Beginning{
		Name: "deliver " + o.Subscription.Name, Kind: tracing.Client, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "deliver"},
			{Key: tracing.KeyDestination, Value: o.Subscription.Source.String()}, {Key: tracing.KeySubscription, Value: o.Subscription.Name},
			{Key: tracing.KeyEvents, Value: len(batch)}, {Key: tracing.KeyAttempt, Value: attempts + 1},
		},
	})
	result := c.deliver(ctx, o, batch)
	if span != nil {
		result.end(span)
	}
	return result
}

// end ends the span with what came of the delivery.
func (r *Result) end(span tracing.Span) {
	span.Set(tracing.Attribute{Key: tracing.KeyOutcome, Value: string(r.Outcome)})
	if r.Status != 0 {
		span.Set(tracing.Attribute{Key: tracing.KeyStatus, Value: r.Status})
	}
	if r.Outcome == retry.Delivered {
		span.End(nil)
		return
	}
	text := string(r.Outcome)
	if r.Err != "" {
		text += ": " + r.Err
	}
	span.End(errors.New(text))
}
