package eventhubs

import (
	"context"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/tracing"
)

// span begins that of a publication whose events carry a trace; nil: none does, or nobody makes spans. What
// clients have sent is stored as it is: the yard begins no traces here.
func (s *sender) span(ctx context.Context, b *batch) tracing.Span {
	tracer := s.peer.handler.cfg.Tracer
	if tracer == nil {
		return nil
	}
	var g tracing.Gathering
	for i := range b.events {
		_, properties, _ := message.BodyAndProperties(b.events[i].Message)
		g.Add(tracing.OfProperties(properties))
	}
	_, span := g.Begin(ctx, tracer, tracing.Beginning{
		Name: "send " + s.hub.Name, Kind: tracing.Producer, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "send"},
			{Key: tracing.KeyDestination, Value: s.hub.Name}, {Key: tracing.KeyEvents, Value: len(b.events)},
		},
	})
	return span
}
