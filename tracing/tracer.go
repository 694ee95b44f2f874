package tracing

import "context"

// Tracer makes spans. It never blocks and never fails: what it cannot keep it drops. All methods may be
// called by many goroutines at once. nil is no tracer.
type Tracer interface {
	// Start begins a span, and gives a context with it for what is done in it.
	Start(ctx context.Context, b Beginning) (context.Context, Span)
}

// Span is something that is done with events, from its start to its end.
type Span interface {
	// Context is where it is in its trace.
	Context() Context
	// Set adds what became known of it.
	Set(attributes ...Attribute)
	// End ends it, once; err is why it has failed, nil if it has not.
	End(err error)
}

// Kind is who takes part in a span, as OpenTelemetry tells kinds apart.
type Kind int

const (
	Internal Kind = iota
	// Producer stores events for others, Consumer handles them, Client asks somebody else.
	Producer
	Consumer
	Client
)

// Beginning is what a span begins with.
type Beginning struct {
	Name string
	Kind Kind
	// Parent is the span that it is done for; none: it begins a trace.
	Parent Context
	// Links are others that it is done for as well.
	Links      []Context
	Attributes []Attribute
}

// Attribute is a fact about a span. Value is a string, an int, an int64 or a bool.
type Attribute struct {
	Key   string
	Value any
}

// The keys of attributes; the first are OpenTelemetry's own (semantic conventions for messaging).
const (
	KeySystem       = "messaging.system"
	KeyOperation    = "messaging.operation.name"
	KeyDestination  = "messaging.destination.name"
	KeyPartition    = "messaging.destination.partition.id"
	KeyEvents       = "messaging.batch.message_count"
	KeyGroup        = "messaging.consumer.group.name"
	KeyStatus       = "http.response.status_code"
	KeySubscription = "eventyard.subscription"
	KeyFunction     = "eventyard.function"
	KeyAttempt      = "eventyard.attempt"
	KeyOutcome      = "eventyard.outcome"
	KeyReason       = "eventyard.reason"
	KeyMatched      = "eventyard.matched"
	KeySequence     = "eventyard.sequence"
)

// System is what stands at KeySystem.
const System = "eventyard"

// MaxLinks bounds how many traces one span is linked to.
const MaxLinks = 128

// Gathering joins what several events say of their traces.
type Gathering struct {
	// Parent is the first, Links are the others, each once; those beyond MaxLinks are left out.
	Parent Context
	Links  []Context
}

// Add takes in what one event says; none is nothing.
func (g *Gathering) Add(c Context) {
	switch {
	case !c.Valid() || g.Parent.same(c) || len(g.Links) == MaxLinks:
		return
	case !g.Parent.Valid():
		g.Parent = c
		return
	}
	for _, l := range g.Links {
		if l.same(c) {
			return
		}
	}
	g.Links = append(g.Links, c)
}

// Begin begins a span, in the context that it gives. Without a tracer it gives nil.
func Begin(ctx context.Context, t Tracer, b Beginning) (context.Context, Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.Start(ctx, b)
	return With(ctx, span.Context()), span
}

// End ends a span that Begin gave, if it gave one.
func End(s Span, err error) {
	if s != nil {
		s.End(err)
	}
}

// same: it is the same span.
func (c Context) same(d Context) bool { return c.SpanID == d.SpanID && c.TraceID == d.TraceID }

// Begin begins a span for the events whose traces were gathered, the first of which is its parent. Events
// without a trace have no spans: then, and without a tracer, it gives nil.
func (g *Gathering) Begin(ctx context.Context, t Tracer, b Beginning) (context.Context, Span) {
	if t == nil || !g.Parent.Valid() {
		return ctx, nil
	}
	b.Parent, b.Links = g.Parent, g.Links
	return Begin(ctx, t, b)
}
