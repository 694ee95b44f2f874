package webhook

import (
	"context"
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

var (
	beside = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "b=1")
	within = tracing.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b") // of cloudEvent
	span   = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01", "")
)

func traced(n int) *pending.Delivery {
	p := eventGrid(n)
	p.Trace = beside
	return p
}

// recorder is a tracer whose spans are all one.
type recorder struct {
	begun []tracing.Beginning
	set   map[string]any
	ended []error
}

func (r *recorder) Start(ctx context.Context, b tracing.Beginning) (context.Context, tracing.Span) {
	r.begun = append(r.begun, b)
	return ctx, recorded{r}
}

type recorded struct{ *recorder }

func (r recorded) Context() tracing.Context { return span }
func (r recorded) End(err error)            { r.ended = append(r.ended, err) }
func (r recorded) Set(all ...tracing.Attribute) {
	if r.set == nil {
		r.recorder.set = map[string]any{}
	}
	for _, a := range all {
		r.set[a.Key] = a.Value
	}
}

// V6: a webhook hears of the trace of its event; of those of several it hears by each of them alone, unless
// the attempt has a span, which is linked to all.
func TestTheTraceGoesAlong(t *testing.T) {
	batched := func(s *topics.Settings) { s.MaxEvents = 10 }
	for name, x := range map[string]struct {
		batch  []*pending.Delivery
		change func(*topics.Settings)
		off    tracing.Context // what the request says without a tracer
		links  int
		spans  int
	}{
		"of a CloudEvent":           {[]*pending.Delivery{cloudEvent(1)}, nil, within, 0, 1},
		"beside an event":           {[]*pending.Delivery{traced(1)}, nil, beside, 0, 1},
		"none":                      {[]*pending.Delivery{eventGrid(1)}, nil, tracing.Context{}, 0, 0},
		"of several":                {[]*pending.Delivery{traced(1), cloudEvent(2), traced(3)}, batched, tracing.Context{}, 1, 1},
		"of the only one that does": {[]*pending.Delivery{eventGrid(1), traced(2)}, batched, tracing.Context{}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
			c, spans := newSender(t), &recorder{}
			o := prepare(t, c, subscription(r.url, schema.CloudEvents, x.change))
			c.Deliver(t.Context(), o, x.batch)
			q, _ := r.last(t)
			testkit.Equal(t, tracing.OfHeader(q.Header), x.off, "without a tracer")

			c.cfg.Tracer = spans
			c.Deliver(t.Context(), o, x.batch)
			testkit.MustEqual(t, len(spans.begun), x.spans, "spans")
			testkit.MustEqual(t, len(spans.ended), x.spans, "ended")
			if x.spans == 0 {
				return
			}
			q, _ = r.last(t)
			testkit.Equal(t, tracing.OfHeader(q.Header), span, "with one")
			testkit.Equal(t, len(spans.begun[0].Links), x.links, "links")
			testkit.Equal(t, spans.set[tracing.KeyStatus], any(503))
			testkit.Equal(t, spans.set[tracing.KeyOutcome], any(string(retry.Busy)))
			testkit.That(t, spans.ended[0] != nil, "it ended well")
		})
	}
}

// V6: an event that is passed on to a hub has its trace among its properties.
func TestTheTraceGoesIntoAHub(t *testing.T) {
	w := newWriter()
	defer w.free()
	for _, p := range []*pending.Delivery{traced(1), cloudEvent(1)} {
		o := &Order{Subscription: subscription("https://example.com", schema.CloudEvents, nil), properties: map[string]any{}}
		testkit.Must(t, w.scan(o, p))
		want := beside
		if p.Form == schema.CloudEventForm {
			want = within
		}
		testkit.Equal(t, tracing.OfProperties(w.properties(o, []*pending.Delivery{p})), want)
	}
}
