package schema

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

const (
	traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var trace = tracing.Parse(traceParent, "a=1")

// V6: a CloudEvent without a trace gets that of its request, and one that has its own keeps it.
func TestACloudEventIsGivenATrace(t *testing.T) {
	const plain = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"traceparent":"mine"}}`
	e := scanned(t, CloudEventForm, string(AppendTraced(nil, []byte(plain), trace)))
	testkit.Equal(t, e.TraceContext(), trace)
	testkit.Equal(t, string(e.Data)+string(e.ID)+string(e.Source), `{"traceparent":"mine"}1/s`, "the rest")
	testkit.Equal(t, string(AppendTraced([]byte("before"), []byte(plain), tracing.Context{})), "before"+plain, "none")
	own := strings.Replace(plain, `"data"`, `"traceparent":"`+otherParent+`","data"`, 1)
	testkit.Equal(t, string(AppendTraced(nil, []byte(own), trace)), own)
	stateful := strings.Replace(plain, `"data"`, `"tracestate":"b=2","data"`, 1)
	e = scanned(t, CloudEventForm, string(AppendTraced(nil, []byte(stateful), trace)))
	testkit.Equal(t, e.TraceContext(), tracing.Parse(traceParent, "b=2"), "nothing is said twice")
	testkit.Equal(t, string(AppendTraced(nil, []byte("traceparent"), trace)), "traceparent", "what is not understood")
}

// V6: a hub's event tells its trace as a CloudEvent does, however it carries it.
func TestAHubEventHasItsTrace(t *testing.T) {
	cloud := event.Event{ContentType: "application/cloudevents+json", Body: []byte(`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`)}
	owned := cloud
	owned.Body = []byte(strings.Replace(string(cloud.Body), `"id"`, `"traceparent":"`+traceParent+`","tracestate":"a=1","id"`, 1))
	carried := map[string]any{"traceparent": traceParent, "tracestate": "a=1"}
	for name, test := range map[string]struct {
		event      event.Event
		properties map[string]any
	}{
		"a plain one":                  {event.Text("{}"), carried},
		"of an older SDK":              {event.Text("{}"), map[string]any{"Diagnostic-Id": traceParent, "tracestate": "a=1"}},
		"a CloudEvent":                 {cloud, carried},
		"one that says it itself":      {owned, map[string]any{"traceparent": otherParent}},
		"in binary mode":               {event.Text("{}"), map[string]any{"cloudEvents:specversion": "1.0", "cloudEvents:traceparent": traceParent, "cloudEvents:tracestate": "a=1"}},
		"in binary mode, said outside": {event.Text("{}"), map[string]any{"cloudEvents:specversion": "1.0", "traceparent": traceParent, "tracestate": "a=1"}},
	} {
		test.event.Properties = test.properties
		stored := testkit.Value(FromHub(nil, HubEvent{Namespace: "n", Hub: "h", Partition: "0", Event: test.event}))(t)
		testkit.Equal(t, scanned(t, CloudEventForm, string(stored)).TraceContext(), trace, "%s: %s", name, stored)
	}
}

// V6: an event in Event Grid's form has its trace beside it, and shows it where that form has room for more.
func TestATraceBesideAnEvent(t *testing.T) {
	e := scanned(t, EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"2026-01-02T03:04:05Z","data":1}`)
	testkit.Equal(t, e.TraceContext(), tracing.Context{})
	e.Trace = trace
	delivered := testkit.Value(AppendEvent(nil, e, EventGrid))(t)
	testkit.That(t, !strings.Contains(string(delivered), "trace"), "delivered %s", delivered)
	converted := testkit.Value(AppendEvent(nil, e, CloudEvents))(t)
	testkit.Equal(t, scanned(t, CloudEventForm, string(converted)).TraceContext(), trace, "%s", converted)
	for _, out := range []Kind{EventGrid, CloudEvents, Custom} {
		dead := testkit.Value(AppendDeadLetter(nil, e, out, DeadLetter{Reason: "r"}))(t)
		testkit.That(t, strings.Contains(string(dead), `"traceparent":"`+traceParent+`","tracestate":"a=1"`), "as %s it is %s", out, dead)
	}
}
