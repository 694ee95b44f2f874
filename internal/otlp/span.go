package otlp

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/eventyard/eventyard/tracing"
)

// Start begins a span.
func (e *Exporter) Start(ctx context.Context, b tracing.Beginning) (context.Context, tracing.Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(kinds[b.Kind]), trace.WithAttributes(attributes(b.Attributes)...)}
	for _, l := range b.Links {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: remote(l)}))
	}
	if b.Parent.Valid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, remote(b.Parent))
	} else {
		options = append(options, trace.WithNewRoot())
	}
	ctx, s := e.tracer.Start(ctx, b.Name, options...)
	return ctx, span{s}
}

var kinds = map[tracing.Kind]trace.SpanKind{
	tracing.Internal: trace.SpanKindInternal, tracing.Producer: trace.SpanKindProducer,
	tracing.Consumer: trace.SpanKindConsumer, tracing.Client: trace.SpanKindClient,
}

// remote is a span that came with an event.
func remote(c tracing.Context) trace.SpanContext {
	state, err := trace.ParseTraceState(c.State)
	if err != nil { // it is somebody else's mistake, and the trace is good without it
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: c.TraceID, SpanID: c.SpanID, TraceFlags: trace.TraceFlags(c.Flags), TraceState: state, Remote: true,
	})
}

// span is one of OpenTelemetry's.
type span struct{ otel trace.Span }

func (s span) Context() tracing.Context {
	c := s.otel.SpanContext()
	return tracing.Context{TraceID: c.TraceID(), SpanID: c.SpanID(), Flags: byte(c.TraceFlags()), State: c.TraceState().String()}
}

func (s span) Set(all ...tracing.Attribute) { s.otel.SetAttributes(attributes(all)...) }

func (s span) End(err error) {
	if err != nil {
		s.otel.SetStatus(codes.Error, err.Error())
	}
	s.otel.End()
}

func attributes(all []tracing.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(all))
	for i, a := range all {
		switch v := a.Value.(type) {
		case string:
			out[i] = attribute.String(a.Key, v)
		case int:
			out[i] = attribute.Int(a.Key, v)
		case int64:
			out[i] = attribute.Int64(a.Key, v)
		case bool:
			out[i] = attribute.Bool(a.Key, v)
		default:
			out[i] = attribute.String(a.Key, fmt.Sprint(v))
		}
	}
	return out
}
