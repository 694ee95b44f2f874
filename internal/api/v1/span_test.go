package v1

import (
	"context"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// recorder is a tracer whose spans are all of one context.
type recorder struct {
	gives  tracing.Context
	begun  []tracing.Beginning
	ended  []error
	events []any
}

func (r *recorder) Start(ctx context.Context, b tracing.Beginning) (context.Context, tracing.Span) {
	r.begun = append(r.begun, b)
	return ctx, recorded{r}
}

type recorded struct{ *recorder }

func (r recorded) Context() tracing.Context { return r.gives }
func (r recorded) End(err error)            { r.ended = append(r.ended, err) }
func (r recorded) Set(all ...tracing.Attribute) {
	for _, a := range all {
		r.events = append(r.events, a.Value)
	}
}

// V6: with a tracer a send is a span, of the request's trace, of the first event's, or the first of its own.
func TestASendIsASpan(t *testing.T) {
	made := tracing.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	r := &recorder{gives: made}
	y := newYard(t, func(c *Config) { c.Tracer = r })
	y.hub("orders", 1)
	y.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`)
	y.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"},{"body":"y"}]`, "traceparent", traceParent)
	y.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x","properties":{"Diagnostic-Id":"`+traceParent+`"}}]`)
	y.want(400, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"},{}]`)
	y.want(400, "POST", "/api/v1/hubs/orders/events", `[]`)
	asked := tracing.Parse(traceParent, "")
	testkit.MustEqual(t, len(r.begun), 4, "spans")
	for i, want := range []tracing.Context{{}, asked, asked, {}} {
		testkit.Equal(t, r.begun[i].Parent, want, "the parent of span %d", i)
		testkit.Equal(t, r.ended[i] != nil, i == 3, "span %d ended with %v", i, r.ended[i])
	}
	testkit.Slices(t, r.events, []any{1, 2, 1, 1}, "events of each")
	events := y.page("orders", "0", "").Events
	testkit.Equal(t, events[0].Properties["traceparent"], any(made.TraceParent()), "it carries the span on")
	testkit.Equal(t, events[3].Properties["traceparent"], nil, "what an event says is left alone")
}
