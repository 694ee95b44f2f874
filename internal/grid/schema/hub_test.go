package schema

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

func hubEvent(e event.Event) HubEvent {
	return HubEvent{Namespace: "yard", Hub: "orders", Partition: "3", Sequence: 1841, Enqueued: now, Event: e}
}

// G9: hubs feed subscriptions.
func TestHubEventsBecomeCloudEvents(t *testing.T) {
	const plain = `{"specversion":"1.0","id":"yard/orders/3/1841","source":"/hubs/orders/partitions/3","type":"Eventyard.Hub.Event"`
	const at = `"time":"2026-11-15T12:00:00.1234567Z"`
	cloud := func(more map[string]any) map[string]any {
		m := map[string]any{"cloudEvents:specversion": "1.0", "cloudEvents:id": "1", "cloudEvents:source": "/s", "cloudEvents:type": "t"}
		for name, v := range more {
			m[name] = v
		}
		return m
	}
	for _, c := range []struct {
		name  string
		event event.Event
		want  string
	}{
		{"no body", event.Event{}, plain + `,` + at + `}`},
		{"an empty body", event.Event{Body: []byte{}}, plain + `,` + at + `}`},
		{"JSON that says so", event.Event{Body: []byte(` {"a": 1}`), ContentType: "application/json"}, plain + `,` + at + `,"datacontenttype":"application/json","data":{"a": 1}}`},
		{"JSON that does not say so", event.Event{Body: []byte(`[1]`)}, plain + `,` + at + `,"data":[1]}`},
		{"text", event.Event{Body: []byte(`hello`)}, plain + `,` + at + `,"data_base64":"aGVsbG8="}`},
		{"text that looks like JSON", event.Event{Body: []byte(`42`), ContentType: "text/plain"}, plain + `,` + at + `,"datacontenttype":"text/plain","data_base64":"NDI="}`},
		{"JSON that is none", event.Event{Body: []byte(`{`), ContentType: "application/json"}, plain + `,` + at + `,"datacontenttype":"application/json","data_base64":"ew=="}`},
		{"a key, which may be any text", event.Event{Body: []byte(`1`), Key: "a\"\xff"}, plain + `,"subject":"a\"` + "\ufffd" + `",` + at + `,"data":1}`},
		{"a content type that is none", event.Event{Body: []byte(`1`), ContentType: "\r\n\x00"}, plain + `,` + at + `,"data_base64":"MQ=="}`},
		{"a value", event.Event{Value: event.Map{{Key: "a", Value: int32(1)}}}, plain + `,` + at + `,"data":{"a":1}}`},

		{
			"a structured CloudEvent", event.Event{Body: []byte(` {"data":{"a" :1},"id":"1","source":"/s","type":"t","specversion":"1.0","x":5,"time":"2017-08-10T21:03:07Z"} `), ContentType: "application/cloudevents+json; charset=utf-8"},
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2017-08-10T21:03:07Z","x":5,"data":{"a" :1}}`,
		},
		{
			"a structured CloudEvent without a time", event.Event{Body: []byte(cloudEvent), ContentType: "application/cloudevents+json"},
			`{"specversion":"1.0","id":"1","source":"/s","type":"t",` + at + `,"data":{"a":1}}`,
		},
		{
			"what claims to be one", event.Event{Body: []byte(`{"id":"1"}`), ContentType: "application/cloudevents+json"},
			plain + `,` + at + `,"datacontenttype":"application/cloudevents+json","data":{"id":"1"}}`,
		},
		{
			"a CloudEvent in binary mode", event.Event{
				Body: []byte(`{"a":1}`), ContentType: "application/json", Key: "k",
				Properties: cloud(map[string]any{"cloudEvents:subject": "s", "cloudEvents:time": time.Unix(0, 0), "cloudEvents:n": int32(5), "cloudEvents:b": true, "mine": "x", "cloudEvents:BAD": 1}),
			},
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"s","time":"1970-01-01T00:00:00Z","b":true,"n":5,"datacontenttype":"application/json","data":{"a":1}}`,
		},
		{
			"a CloudEvent in binary mode with the other prefix", event.Event{
				Body:       []byte(`hello`),
				Properties: map[string]any{"cloudEvents_specversion": "1.0", "cloudEvents_id": "7", "cloudEvents:id": "1", "cloudEvents_x": "y", "cloudEvents_data": "no", "cloudEvents_time": "now", "cloudEvents_l": []any{}},
			},
			`{"specversion":"1.0","id":"1","source":"/hubs/orders/partitions/3","type":"Eventyard.Hub.Event",` + at + `,"x":"y","data_base64":"aGVsbG8="}`,
		},
		{"a CloudEvent of another version", event.Event{Properties: map[string]any{"cloudEvents:specversion": "0.3", "cloudEvents:id": "1"}}, plain + `,` + at + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.MustEqual(t, string(testkit.Value(FromHub([]byte("before"), hubEvent(c.event)))(t)), "before"+c.want, "wrote")
			scanned(t, CloudEventForm, c.want)
		})
	}
}

// G9: a source hub's events are delivered in both schemas.
func TestHubEventsAreDeliveredAsEventGridEvents(t *testing.T) {
	for _, c := range []struct {
		event event.Event
		want  string
	}{
		{
			event.Event{Body: []byte(`{"a":1}`), Key: "k"},
			`{"topic":"` + topicID + `","id":"yard/orders/3/1841","subject":"k","eventType":"Eventyard.Hub.Event","eventTime":"2026-11-15T12:00:00.1234567Z","dataVersion":"","metadataVersion":"1","data":{"a":1}}`,
		},
		{
			event.Event{Body: []byte(`hello`)},
			`{"topic":"` + topicID + `","id":"yard/orders/3/1841","subject":"","eventType":"Eventyard.Hub.Event","eventTime":"2026-11-15T12:00:00.1234567Z","dataVersion":"","metadataVersion":"1","data":"aGVsbG8="}`,
		},
	} {
		t.Run(string(c.event.Body), func(t *testing.T) {
			stored := testkit.Value(FromHub(nil, hubEvent(c.event)))(t)
			got := testkit.Value(AppendEvent(nil, scanned(t, CloudEventForm, string(stored)), EventGrid))(t)
			testkit.Equal(t, string(got), c.want, "wrote")
		})
	}
}
