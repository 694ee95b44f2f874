package grid

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	gridOne  = `{"topic":"/subscriptions/s/topics/orders","id":"1","subject":"orders/42","eventType":"order.placed","eventTime":"2030-01-02T12:00:00.0000005Z","dataVersion":"2","metadataVersion":"1","data":{"total":1999}}`
	cloudOne = `{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","subject":"orders/42","time":"2030-01-02T12:00:00.0000005Z","traceparent":"00","level":3,"data":{"total":1999}}`
)

var (
	fromGrid  = Event{ID: "1", Type: "order.placed", Source: "/subscriptions/s/topics/orders", Subject: "orders/42", Time: noon, DataVersion: "2", Data: []byte(`{"total":1999}`)}
	fromCloud = Event{ID: "1", Type: "order.placed", Source: "/shop", Subject: "orders/42", Time: noon, Data: []byte(`{"total":1999}`),
		Extensions: map[string]any{"traceparent": "00", "level": int64(3)}}
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// G9: every shape that deliveries come in.
func TestShapes(t *testing.T) {
	plain := Event{ID: "1", Type: "x", Source: "s"}
	with := func(change func(*Event)) []Event {
		e := plain
		change(&e)
		return []Event{e}
	}
	cloud := func(more string) string { return `{"specversion":"1.0","id":"1","source":"s","type":"x"` + more + `}` }
	const batch, structured = "application/cloudevents-batch+json; charset=utf-8", "application/cloudevents+json; charset=utf-8"
	for _, tt := range []struct {
		what   string
		header http.Header
		body   string
		custom bool
		want   []Event
	}{
		{"Event Grid, one", header("Content-Type", "application/json; charset=utf-8"), "[" + gridOne + "]", false, []Event{fromGrid}},
		{"Event Grid, several", header("Content-Type", "application/json"), " [" + gridOne + ", " + gridOne + "] ", false, []Event{fromGrid, fromGrid}},
		{"Event Grid, a lone object", header("Content-Type", "application/json"), gridOne, false, []Event{fromGrid}},
		{"Event Grid, data that is null", header("Content-Type", "application/json"), `[{"id":"1","eventType":"x","eventTime":"2030-01-02T12:00:00.0000005","topic":"s","data":null}]`, false, with(func(e *Event) { e.Time = noon })},
		{"Event Grid, a time that is none", header("Content-Type", "application/json"), `[{"id":"1","eventType":"x","eventTime":"noon","topic":"s"}]`, false, []Event{plain}},
		{"no event", header("Content-Type", "application/json"), "[]", false, []Event{}},
		{"a CloudEvent", header("Content-Type", structured), cloudOne, false, []Event{fromCloud}},
		{"CloudEvents in a batch", header("Content-Type", batch), "[" + cloudOne + "," + cloudOne + "]", false, []Event{fromCloud, fromCloud}},
		{"a CloudEvent by the name of JSON", header("Content-Type", "application/json"), cloudOne, false, []Event{fromCloud}},
		{"CloudEvents where custom ones are expected", header("Content-Type", structured), cloudOne, true, []Event{fromCloud}},
		{"bytes", header("Content-Type", structured), cloud(`,"datacontenttype":"image/png","data_base64":"yv4="`), false,
			with(func(e *Event) { e.ContentType, e.Data = "image/png", []byte{0xca, 0xfe} })},
		{"bytes of an unknown type", header("Content-Type", structured), cloud(`,"data_base64":"yv4="`), false,
			with(func(e *Event) { e.ContentType, e.Data = "application/octet-stream", []byte{0xca, 0xfe} })},
		{"no bytes", header("Content-Type", structured), cloud(`,"data_base64":""`), false,
			with(func(e *Event) { e.ContentType, e.Data = "application/octet-stream", []byte{} })},
		{"text", header("Content-Type", structured), cloud(`,"datacontenttype":"text/plain","data":"a\nb"`), false,
			with(func(e *Event) { e.ContentType, e.Data = "text/plain", []byte("a\nb") })},
		{"a string that is JSON", header("Content-Type", structured), cloud(`,"data":"a\nb"`), false, with(func(e *Event) { e.Data = []byte(`"a\nb"`) })},
		{"the type that the SDK for JavaScript writes", header("Content-Type", structured), cloud(`,"datacontenttype":"application/cloudevents+json; charset=utf-8","data":{}`), false,
			with(func(e *Event) {
				e.ContentType, e.Data = "application/cloudevents+json; charset=utf-8", []byte("{}")
			})},
		{"extensions of all kinds", header("Content-Type", structured), cloud(`,"a":"t","b":true,"c":-7,"d":2.5,"e":null,"f":{},"g":[1],"Bad":1`), false,
			with(func(e *Event) { e.Extensions = map[string]any{"a": "t", "b": true, "c": int64(-7), "d": 2.5} })},
		{"binary mode", header("Content-Type", "application/json", "ce-specversion", "1.0", "ce-id", "1", "ce-source", "/shop", "ce-type", "order.placed",
			"ce-subject", "orders/42", "ce-time", "2030-01-02T12:00:00.0000005Z", "ce-traceparent", "00"), `{"total":1999}`, false,
			[]Event{{ID: "1", Type: "order.placed", Source: "/shop", Subject: "orders/42", Time: noon, ContentType: "application/json", Data: []byte(`{"total":1999}`), Extensions: map[string]any{"traceparent": "00"}}}},
		{"binary mode with escapes and bytes", header("Content-Type", "image/png", "ce-specversion", "1.0", "ce-id", "1", "ce-source", "s", "ce-type", "x",
			"ce-subject", "Euro%20%E2%82%AC 100%", "ce-dataschema", "%23%31"), "\xca\xfe", false,
			with(func(e *Event) {
				e.Subject, e.DataSchema, e.ContentType, e.Data = "Euro%20%E2%82%AC 100%", "#1", "image/png", []byte{0xca, 0xfe}
			})},
		{"binary mode with bytes of an unknown type", header("ce-specversion", "1.0", "ce-id", "1", "ce-source", "s", "ce-type", "x"), "\xca\xfe", false,
			with(func(e *Event) { e.ContentType, e.Data = "application/octet-stream", []byte{0xca, 0xfe} })},
		{"binary mode without a body", header("ce-specversion", "1.0", "ce-id", "1", "ce-source", "s", "ce-type", "x"), "", false, []Event{plain}},
		{"a custom one", header("Content-Type", "application/json"), `[{"kind": "order"}, {"id":"1"}]`, false, []Event{{Data: []byte(`{"kind": "order"}`)}, {Data: []byte(`{"id":"1"}`)}}},
		{"a custom one that looks like another", header("Content-Type", "application/json"), `[` + gridOne + `]`, true, []Event{{Data: []byte(gridOne)}}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got := testkit.Value(decodeRequest(tt.header, []byte(tt.body), tt.custom))(t)
			testkit.Diff(t, tt.want, got)
		})
	}
}

func TestShapesThatAreNone(t *testing.T) {
	const structured = "application/cloudevents+json"
	for _, tt := range []struct {
		what   string
		header http.Header
		body   string
		want   int
	}{
		{"no content type", header(), "[]", 415},
		{"another content type", header("Content-Type", "text/html"), "<p>", 415},
		{"a content type that is none", header("Content-Type", ";;"), "[]", 415},
		{"compressed", header("Content-Type", "application/json", "Content-Encoding", "gzip"), "x", 415},
		{"nothing", header("Content-Type", "application/json"), "", 400},
		{"half an array", header("Content-Type", "application/json"), "[{}", 400},
		{"an array and more", header("Content-Type", "application/json"), "[{}] x", 400},
		{"an array of numbers", header("Content-Type", "application/json"), "[1]", 400},
		{"an array of null", header("Content-Type", "application/json"), "[null]", 400},
		{"a string", header("Content-Type", "application/json"), `"x"`, 400},
		{"a CloudEvent without an id", header("Content-Type", structured), `{"specversion":"1.0","source":"s","type":"x"}`, 400},
		{"whose id is a number", header("Content-Type", structured), `{"specversion":"1.0","id":1,"source":"s","type":"x"}`, 400},
		{"without a source", header("Content-Type", structured), `{"specversion":"1.0","id":"1","type":"x"}`, 400},
		{"without a type", header("Content-Type", structured), `{"specversion":"1.0","id":"1","source":"s","type":""}`, 400},
		{"of another version", header("Content-Type", structured), `{"specversion":"0.3","id":"1","source":"s","type":"x"}`, 400},
		{"of a version that is a number", header("Content-Type", structured), `{"specversion":1.0,"id":"1","source":"s","type":"x"}`, 400},
		{"with data twice", header("Content-Type", structured), `{"specversion":"1.0","id":"1","source":"s","type":"x","data":1,"data_base64":"yv4="}`, 400},
		{"with base64 that is none", header("Content-Type", structured), `{"specversion":"1.0","id":"1","source":"s","type":"x","data_base64":"!"}`, 400},
		{"with base64 that is a number", header("Content-Type", structured), `{"specversion":"1.0","id":"1","source":"s","type":"x","data_base64":7}`, 400},
		{"binary mode without an id", header("ce-specversion", "1.0", "ce-source", "s", "ce-type", "x"), "", 400},
		{"binary mode of another version", header("ce-specversion", "0.3", "ce-id", "1", "ce-source", "s", "ce-type", "x"), "", 400},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got, err := decodeRequest(tt.header, []byte(tt.body), false)
			if f := (*fault)(nil); !errors.As(err, &f) || f.status != tt.want {
				t.Errorf("got %+v, %v, want status %d", got, err, tt.want)
			}
		})
	}
}

// Whatever strangers send is refused with a status, or is events that can be written again.
func FuzzDecodeRequest(f *testing.F) {
	for _, body := range []string{"", "[]", "{}", "null", "[" + gridOne + "]", gridOne, cloudOne, "[" + cloudOne + "," + cloudOne + "]", `[{"kind":"order"}]`,
		`{"specversion":"1.0","id":"1","source":"s","type":"x","datacontenttype":"text/plain","data":"a"}`,
		`{"specversion":"1.0","id":"1","source":"s","type":"x","data_base64":"yv4=","a":1e400,"b":-0}`, "\xff", strings.Repeat("[", 200)} {
		for _, contentType := range []string{"application/json", "application/cloudevents+json", "application/cloudevents-batch+json"} {
			f.Add(contentType, "", []byte(body))
		}
		f.Add("text/plain", "1.0", []byte(body))
	}
	f.Fuzz(func(t *testing.T, contentType, binary string, body []byte) {
		h := header("Content-Type", contentType)
		if binary != "" {
			h = header("Content-Type", contentType, "ce-specversion", binary, "ce-id", "1", "ce-source", "s", "ce-type", binary, "ce-x", contentType)
		}
		events, err := decodeRequest(h, body, false)
		if f := (*fault)(nil); err != nil && !errors.As(err, &f) {
			t.Fatalf("an error without a status: %v", err)
		}
		for _, e := range events {
			checkAgain(t, e)
		}
	})
}

// checkAgain publishes what was received.
func checkAgain(t *testing.T, e Event) {
	if e.Type == "" {
		if !json.Valid(e.Data) {
			t.Fatalf("a custom event of %q", e.Data)
		}
		return
	}
	if isJSON(e.ContentType) && e.Data != nil && !json.Valid(e.Data) {
		return // binary mode takes what it is told
	}
	if e.Source == "" {
		e.Source = "s" // an Event Grid event need not have one
	}
	body, err := CloudEvents.encode([]Event{e})
	testkit.Must(t, err, "%+v cannot be written", e)
	again, err := decodeBody(body, false)
	if err != nil || len(again) != 1 || again[0].ID != e.ID || !again[0].Time.Equal(e.Time) || len(again[0].Extensions) != len(e.Extensions) {
		t.Fatalf("%+v was written as %s and read as %+v, %v", e, body, again, err)
	}
}

// G9: every spelling that a yard takes in the Event Grid schema, which it delivers as it was sent.
func TestTimes(t *testing.T) {
	minute := noon.Truncate(time.Minute)
	for text, want := range map[string]time.Time{
		"2030-01-02T12:00:00.0000005Z": noon, "2030-01-02T13:00:00.0000005+01:00": noon, "2030-01-02T12:00:00.0000005": noon,
		"2030-01-02T13:00:00.0000005+0100": noon, "2030-01-02T11:00:00.0000005-01": noon, "2030-01-02 12:00:00.0000005": noon, "2030-01-02t12:00:00.0000005z": noon,
		"2030-01-02T12:00Z": minute, "2030-01-02 12:00": minute, "2030-01-02T13:00+01:00": minute,
		"": {}, "12:00": {}, "2030-01-02": {}, "2030-01-02X12:00:00Z": {}, "2030-13-02T12:00:00Z": {},
	} {
		t.Run(text, func(t *testing.T) {
			if got := decodeTime(text); !got.Equal(want) {
				t.Errorf("%q is %v", text, got)
			}
		})
	}
}
