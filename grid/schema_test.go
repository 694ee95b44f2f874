package grid

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 500, time.UTC)

// G9: what is written, to the byte.
func TestEncode(t *testing.T) {
	order := Event{ID: "1", Type: "order.placed", Subject: "orders/42", Time: noon.In(time.FixedZone("", 3600)), Data: []byte(`{"a": "<b>"}`)}
	with := func(change func(*Event)) Event {
		e := order
		change(&e)
		return e
	}
	for _, tt := range []struct {
		what   string
		schema Schema
		event  Event
		want   string
	}{
		{"Event Grid", EventGrid, order,
			`[{"id":"1","subject":"orders/42","eventType":"order.placed","eventTime":"2030-01-02T12:00:00.0000005Z","dataVersion":"","data":{"a":"<b>"}}]`},
		{"Event Grid with all", EventGrid, with(func(e *Event) { e.Source, e.DataVersion, e.Data = "eu", "2", []byte("null") }),
			`[{"topic":"eu","id":"1","subject":"orders/42","eventType":"order.placed","eventTime":"2030-01-02T12:00:00.0000005Z","dataVersion":"2","data":null}]`},
		{"Event Grid with little", EventGrid, Event{Type: "x"},
			`[{"id":"","subject":"","eventType":"x","eventTime":"0001-01-01T00:00:00Z","dataVersion":""}]`},
		{"a CloudEvent", CloudEvents, with(func(e *Event) { e.Source = "/shop" }),
			`[{"data":{"a":"<b>"},"id":"1","source":"/shop","specversion":"1.0","subject":"orders/42","time":"2030-01-02T12:00:00.0000005Z","type":"order.placed"}]`},
		{"a CloudEvent of bytes", CloudEvents, Event{ID: "1", Type: "x", Source: "s", Time: noon, ContentType: "image/png", Data: []byte{0xca, 0xfe}},
			`[{"data_base64":"yv4=","datacontenttype":"image/png","id":"1","source":"s","specversion":"1.0","time":"2030-01-02T12:00:00.0000005Z","type":"x"}]`},
		{"a CloudEvent with extensions", CloudEvents, Event{ID: "1", Type: "x", Source: "s", Time: noon, DataSchema: "#2", Extensions: map[string]any{"n": 7, "ok": true, "none": nil, "traceparent": "00"}},
			`[{"dataschema":"#2","id":"1","n":7,"ok":true,"source":"s","specversion":"1.0","time":"2030-01-02T12:00:00.0000005Z","traceparent":"00","type":"x"}]`},
		{"a custom one", Custom, Event{Data: []byte(` {"kind": "order"} `)}, `[{"kind": "order"}]`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, string(testkit.Value(tt.schema.encode([]Event{tt.event}))(t)), tt.want, "wrote")
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	good := Event{ID: "1", Type: "x", Source: "s", Time: noon}
	with := func(change func(*Event)) Event {
		e := good
		change(&e)
		return e
	}
	for _, tt := range []struct {
		what    string
		schemas []Schema
		event   Event
		wrong   string
	}{
		{"no type", []Schema{EventGrid, CloudEvents}, with(func(e *Event) { e.Type = "" }), "set Type"},
		{"a time that cannot be written", []Schema{EventGrid, CloudEvents}, with(func(e *Event) { e.Time = noon.AddDate(9000, 0, 0) }), "year 11030"},
		{"data that is no JSON", []Schema{EventGrid, CloudEvents}, with(func(e *Event) { e.Data = []byte("{") }), "data is not JSON"},
		{"data that is empty", []Schema{EventGrid, CloudEvents}, with(func(e *Event) { e.Data = []byte{} }), "data is not JSON"},
		{"data of another type", []Schema{EventGrid}, with(func(e *Event) { e.ContentType = "text/plain" }), "only CloudEvents"},
		{"extensions", []Schema{EventGrid}, with(func(e *Event) { e.Extensions = map[string]any{"a": 1} }), "no extensions"},
		{"no source", []Schema{CloudEvents}, with(func(e *Event) { e.Source = "" }), "set Source"},
		{"an extension with capitals", []Schema{CloudEvents}, with(func(e *Event) { e.Extensions = map[string]any{"traceParent": 1} }), "small letters"},
		{"an extension without a name", []Schema{CloudEvents}, with(func(e *Event) { e.Extensions = map[string]any{"": 1} }), "small letters"},
		{"an extension that is an attribute", []Schema{CloudEvents}, with(func(e *Event) { e.Extensions = map[string]any{"id": 1} }), "use the field"},
		{"an extension that is no JSON", []Schema{CloudEvents}, with(func(e *Event) { e.Extensions = map[string]any{"a": func() {}} }), "unsupported type"},
		{"no object", []Schema{Custom}, with(func(e *Event) { e.Data = []byte("[]") }), "the whole event"},
		{"half an object", []Schema{Custom}, with(func(e *Event) { e.Data = []byte("{") }), "the whole event"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			for _, schema := range tt.schemas {
				_, err := schema.encode([]Event{good, tt.event})
				if schema == Custom {
					_, err = schema.encode([]Event{{Data: []byte("{}")}, tt.event})
				}
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), "event 2") {
					t.Errorf("schema %d: %v, want %q", schema, err, tt.wrong)
				}
			}
		})
	}
}

// anyEvent draws an event that a schema can carry.
func anyEvent(t *rapid.T, schema Schema) Event {
	text := func(name string) string { return rapid.StringMatching(`[ -~é€]{1,12}`).Draw(t, name) }
	e := Event{
		ID: text("id"), Type: text("type"), Source: text("source"), Subject: text("subject"),
		Time: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "time"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
	}
	if rapid.Bool().Draw(t, "has data") {
		e.Data = []byte(rapid.SampledFrom([]string{`{}`, `{"a":[1,2.5,"<é>"]}`, `"text"`, `7`, `false`, `[]`}).Draw(t, "data"))
	}
	if schema == EventGrid {
		e.DataVersion = rapid.SampledFrom([]string{"", "1.0"}).Draw(t, "version")
		return e
	}
	e.DataSchema = rapid.SampledFrom([]string{"", "#1"}).Draw(t, "schema")
	e.ContentType = rapid.SampledFrom([]string{"", "application/json", "text/plain", "application/octet-stream"}).Draw(t, "content type")
	if rapid.Bool().Draw(t, "has extensions") {
		e.Extensions = map[string]any{"a": text("extension"), "b1": rapid.Bool().Draw(t, "bool"), "c": int64(rapid.Int32().Draw(t, "int"))}
	}
	return e
}

// G9: what is published is what is received.
func TestEventsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.SampledFrom([]Schema{EventGrid, CloudEvents}).Draw(t, "schema")
		want := []Event{anyEvent(t, schema), anyEvent(t, schema)}
		body := testkit.Value(schema.encode(want))(t)
		got, err := decodeBody(body, false)
		testkit.Must(t, err, "%s", body)
		testkit.MustDiff(t, want, got)
	})
}

// G9: the official library reads what we write as CloudEvents.
func TestCloudEventsAgainstTheOfficialLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyEvent(t, CloudEvents)
		want.Source = rapid.StringMatching(`/[a-z]{1,9}`).Draw(t, "path") // the library wants a URI
		body := testkit.Value(CloudEvents.encode([]Event{want}))(t)
		var batch []cloudevents.Event
		testkit.Must(t, json.Unmarshal(body, &batch), "%s", body)
		got := batch[0]
		if got.ID() != want.ID || got.Type() != want.Type || got.Source() != want.Source || got.Subject() != want.Subject || !got.Time().Equal(want.Time) {
			t.Fatalf("%s was read as %v", body, got)
		}
		if string(got.Data()) != string(want.Data) || got.DataContentType() != want.ContentType || got.DataSchema() != want.DataSchema {
			t.Fatalf("%s has the data %q of %q", body, got.Data(), got.DataContentType())
		}
		if len(got.Extensions()) != len(want.Extensions) || want.Extensions != nil && got.Extensions()["a"] != want.Extensions["a"] {
			t.Fatalf("%s has the extensions %v", body, got.Extensions())
		}
	})
}
