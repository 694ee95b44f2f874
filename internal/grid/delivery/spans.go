package delivery

import (
	"context"
	"strconv"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/tracing"
)

// Spans of what becomes of events beside their deliveries, each of which has one of its own (package
// webhook). What they tell of is over when they begin: they are moments.

// traceMatch tells how many subscriptions the event matches that the reading is on. Those that catch up by
// themselves are among them.
func (f *feed) traceMatch(n int64) {
	trace := f.reading.envelope.TraceContext()
	if !trace.Valid() {
		return
	}
	_, span := f.s.cfg.Tracer.Start(context.Background(), tracing.Beginning{
		Name: "match", Parent: trace, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "match"},
			{Key: tracing.KeyDestination, Value: f.label}, {Key: tracing.KeyPartition, Value: strconv.Itoa(f.partition)},
			{Key: tracing.KeySequence, Value: n}, {Key: tracing.KeyMatched, Value: len(f.matched)},
		},
	})
	span.End(nil)
}

// traceDead tells that events are dead letters now, traceDrop that they are nothing.
func (b *batch) traceDead(deliveries []pending.Delivery, reason string) {
	if b.lane.s.cfg.Tracer == nil {
		return
	}
	for i := range deliveries {
		b.traceEnd("dead-letter", &deliveries[i], reason)
	}
}

func (b *batch) traceDrop(items []*item, reason string) {
	if b.lane.s.cfg.Tracer == nil {
		return
	}
	for _, it := range items {
		b.traceEnd("drop", &it.Delivery, reason)
	}
}

func (b *batch) traceEnd(doing string, p *pending.Delivery, reason string) {
	trace := p.TraceContext()
	if !trace.Valid() {
		return
	}
	sub := b.terms.sub
	_, span := b.lane.s.cfg.Tracer.Start(context.Background(), tracing.Beginning{
		Name: doing + " " + sub.Name, Parent: trace, Attributes: []tracing.Attribute{
			{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: doing},
			{Key: tracing.KeyDestination, Value: sub.Source.String()}, {Key: tracing.KeySubscription, Value: sub.Name},
			{Key: tracing.KeyAttempt, Value: p.Attempts}, {Key: tracing.KeyReason, Value: reason},
		},
	})
	span.End(nil)
}
