package handler

import (
	"context"
	"strconv"

	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/tracing"
)

// span begins that of a batch whose records carry a trace; nil: none does, or nobody makes spans. What clients
// have sent is stored as it is: the yard begins no traces here. Records are gone through for it, also packed
// ones, which is done only where there is a tracer.
func (b *production) span(ctx context.Context, part kafka.ProducePartition) tracing.Span {
	tracer := b.peer.handler.cfg.Tracer
	if tracer == nil || b.refused != nil || part.TooLarge {
		return nil
	}
	head, err := record.ReadHead(part.Records)
	if err != nil {
		return nil // submit says why
	}
	var g tracing.Gathering
	_ = head.Each(part.Records, func(_ int, r *record.Record) bool {
		g.Add(traceOf(r.Headers))
		return true
	})
	_, span := g.Begin(ctx, tracer, tracing.Beginning{
		Name: "send " + b.hub.Name, Kind: tracing.Producer, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "send"},
			{Key: tracing.KeyDestination, Value: b.hub.Name}, {Key: tracing.KeyPartition, Value: strconv.Itoa(int(part.Partition))},
			{Key: tracing.KeyEvents, Value: int(head.Count)},
		},
	})
	return span
}

// traceOf is what the headers of a record say; of those with one name the last counts.
func traceOf(headers []record.Header) tracing.Context {
	var parent, state []byte
	for _, h := range headers {
		switch string(h.Name) {
		case tracing.Parent:
			parent = h.Value
		case tracing.State:
			state = h.Value
		}
	}
	if parent == nil {
		return tracing.Context{}
	}
	return tracing.Parse(string(parent), string(state))
}
