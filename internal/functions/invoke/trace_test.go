package invoke

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// V6: a function hears of the trace of its event, of the span of its call, and with each event of its own.
func TestTheTraceGoesAlong(t *testing.T) {
	event := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1")
	span := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01", "")
	type seen struct {
		trace tracing.Context
		body  string
	}
	calls := make(chan seen, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		calls <- seen{tracing.OfHeader(r.Header), readAll(t, r.Body)}
	})
	c := caller(t, Config{URL: s.URL})
	several := threeEvents()
	for i := range several.Events {
		several.Events[i].SetTrace(event)
	}
	single := several
	single.Events = several.Events[:1]
	for name, x := range map[string]struct {
		ctx  context.Context
		call Call
		want tracing.Context
	}{
		"one event":     {t.Context(), single, event},
		"several":       {t.Context(), several, tracing.Context{}},
		"within a span": {tracing.With(t.Context(), span), several, span},
	} {
		testkit.Must(t, testkit.Err(c.Do(x.ctx, x.call)))
		got := <-calls
		testkit.Equal(t, got.trace, x.want, "%s", name)
		testkit.Equal(t, strings.Count(got.body, `"traceparent":"`+event.TraceParent()+`"`), len(x.call.Events), "%s: each event says it: %s", name, got.body)
	}
}
