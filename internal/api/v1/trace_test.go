package v1

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// V6: events that say nothing of a trace get that of their request, by either API.
func TestSendCarriesTheTrace(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	header := []string{"traceparent", traceParent, "tracestate", "a=1"}
	y.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x","properties":{"n":1}},{"body":"x","properties":{"traceparent":"`+own+`"}},{"body":"x","properties":{"traceparent":"mine"}}]`, header...)
	y.want(201, "POST", "/orders/messages", "x", header...)
	y.want(201, "POST", "/api/v1/hubs/orders/events", `[{"body":"x"}]`, "traceparent", "rubbish")
	want := []string{traceParent, own, "mine", traceParent, ""}
	for i, e := range y.page("orders", "0", "").Events {
		got, _ := e.Properties["traceparent"].(string)
		testkit.Equal(t, got, want[i], "event %d", i)
		if got == traceParent {
			testkit.Equal(t, e.Properties["tracestate"], any("a=1"), "event %d", i)
		}
	}
}

// V6: a trace is no reason to refuse what fits without it: one event that is as large as it may be, and as many small
// ones as there may be. What is stored stays within what a batch may take.
func TestATraceIsNoReasonToRefuse(t *testing.T) {
	const limit = 1 << 20
	trace := tracing.Parse(traceParent, strings.Repeat("x", 500))
	testkit.That(t, trace.State != "", "the trace has a state")
	for _, body := range []int{10, 1000, limit - 100} {
		plain, traced := outbox{limit: limit}, outbox{limit: limit, trace: trace}
		ev := event.Event{Body: make([]byte, body)}
		for plain.add(ev) == nil {
			testkit.Must(t, traced.add(ev), "with a trace")
		}
		stored := eventlog.Batch{Events: traced.events}
		testkit.That(t, stored.Bytes() <= eventlog.MaxBatchBytes, "%d bytes are stored", stored.Bytes())
		testkit.That(t, traced.traces > 0 || body > 1000, "no event has a trace")
	}
}
