package processor

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/tracing"
)

// errPanicked is what the span of a call says that did not return.
var errPanicked = errors.New("the handler panicked")

// process calls the handler, in a span if there are any.
func (p *pump) process(ctx context.Context, b *Batch) (err error) {
	tracer := p.in.cfg.Tracer
	if tracer == nil {
		return p.calls.worker.ProcessEvents(ctx, b)
	}
	var g tracing.Gathering
	for i := range b.Events {
		g.Add(b.Events[i].Trace())
	}
	ctx, span := g.Begin(ctx, tracer, tracing.Beginning{
		Name: "process " + p.in.group.Hub, Kind: tracing.Consumer, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "process"},
			{Key: tracing.KeyDestination, Value: p.in.group.Hub}, {Key: tracing.KeyGroup, Value: p.in.group.Group},
			{Key: tracing.KeyPartition, Value: p.id}, {Key: tracing.KeyEvents, Value: len(b.Events)}, {Key: tracing.KeyAttempt, Value: b.Attempt},
		},
	})
	err = errPanicked
	defer func() { tracing.End(span, err) }()
	err = p.calls.worker.ProcessEvents(ctx, b)
	return err
}
