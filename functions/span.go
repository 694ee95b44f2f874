package functions

import (
	"context"

	"github.com/eventyard/eventyard/tracing"
)

// span begins that of a call, and gives the context in which it is made: with the span or, where there is
// none, with the trace of the only event.
func (f *function) span(ctx context.Context, b *Batch) (context.Context, tracing.Span) {
	if f.tracer == nil {
		if len(b.Events) == 1 {
			ctx = tracing.With(ctx, b.Events[0].Trace())
		}
		return ctx, nil
	}
	var g tracing.Gathering
	for i := range b.Events {
		g.Add(b.Events[i].Trace())
	}
	return g.Begin(ctx, f.tracer, tracing.Beginning{
		Name: "call " + b.Function, Kind: tracing.Consumer, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "process"},
			{Key: tracing.KeyFunction, Value: b.Function}, {Key: tracing.KeyDestination, Value: b.Hub},
			{Key: tracing.KeyGroup, Value: b.Group}, {Key: tracing.KeyPartition, Value: b.Partition},
			{Key: tracing.KeyEvents, Value: len(b.Events)}, {Key: tracing.KeyAttempt, Value: b.Attempt},
		},
	})
}

// end ends the span of a call with what came of it.
func (out *outcome) end(span tracing.Span) {
	if span == nil {
		return
	}
	err := out.err
	if out.cancelled && err == nil {
		err = context.Canceled
	}
	span.End(err)
}

// traceAway makes a span of the moment in which an event was put away, or dropped.
func (f *function) traceAway(doing string, l *PoisonEvent) {
	if f.tracer == nil {
		return
	}
	trace := l.Event.Trace()
	if !trace.Valid() {
		return
	}
	_, span := f.tracer.Start(context.Background(), tracing.Beginning{
		Name: doing + " " + f.name, Parent: trace, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: doing},
			{Key: tracing.KeyFunction, Value: f.name}, {Key: tracing.KeyDestination, Value: l.Hub},
			{Key: tracing.KeyAttempt, Value: l.Attempts}, {Key: tracing.KeyReason, Value: l.Reason},
		},
	})
	span.End(nil)
}
