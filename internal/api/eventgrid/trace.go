package eventgrid

import (
	"context"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/tracing"
)

// traced is the context in which events are stored: with the trace that their request came with, which those
// get that say nothing of one. With a tracer it is that of the publication's span; that belongs to the trace
// of the request, or to that of the first event, or begins one.
func traced(ctx context.Context, c *call, events [][]byte) (context.Context, tracing.Span) {
	parent := tracing.OfHeader(c.R.Header)
	if c.handler.cfg.Tracer == nil {
		return tracing.With(ctx, parent), nil
	}
	if form := c.topic.Schema.Form(); !parent.Valid() && form == schema.CloudEventForm {
		var e schema.Envelope
		if e.Scan(form, events[0]) == nil {
			parent = e.TraceContext()
		}
	}
	begun, span := tracing.Begin(ctx, c.handler.cfg.Tracer, tracing.Beginning{
		Name: "publish " + c.topic.Name, Kind: tracing.Producer, Parent: parent, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "publish"},
			{Key: tracing.KeyDestination, Value: c.topic.Name}, {Key: tracing.KeyEvents, Value: len(events)},
		},
	})
	if !parent.Valid() && !span.Context().Sampled() { // of a trace that nobody keeps nobody has to know
		return ctx, span
	}
	return begun, span
}
