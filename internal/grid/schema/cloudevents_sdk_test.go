package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	ce "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The SDK of the CloudEvents project is what most receivers and senders read and write
// with; here both sides of ours meet it.

// anyCloudEvent draws an event as a sender would make it with the SDK. Its texts need no
// percent-encoding, which the SDK does not know.
func anyCloudEvent(t *rapid.T) ce.Event {
	word := rapid.StringMatching(`[a-zA-Z0-9/._~-]{1,12}`)
	e := ce.New("1.0")
	e.SetID(word.Draw(t, "id"))
	e.SetSource("/shops/" + word.Draw(t, "source"))
	e.SetType(word.Draw(t, "type"))
	if rapid.Bool().Draw(t, "has subject") {
		e.SetSubject(word.Draw(t, "subject"))
	}
	if rapid.Bool().Draw(t, "has time") {
		e.SetTime(time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "second"), rapid.Int64Range(0, 1e9-1).Draw(t, "nano")).UTC())
	}
	if rapid.Bool().Draw(t, "has schema") {
		e.SetDataSchema("https://example.test/" + word.Draw(t, "schema"))
	}
	for name, value := range rapid.MapOfN(rapid.StringMatching(`x[a-z0-9]{1,10}`), word, 0, 4).Draw(t, "extensions") {
		e.SetExtension(name, value)
	}
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "kind of data") {
	case 0:
		err = e.SetData(ce.ApplicationJSON, map[string]any{"a": rapid.String().Draw(t, "text"), "n": rapid.Int32().Draw(t, "number")})
	case 1:
		err = e.SetData("image/png", rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bytes"))
	}
	testkit.Must(t, err)
	return e
}

// G9, G12: what the SDK sends is stored, and what is delivered the SDK reads as the same event:
// structured, batched and binary, in and out.
func TestTheCloudEventsSDKUnderstandsUsAndWeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := anyCloudEvent(t)
		for name, request := range map[string]*http.Request{
			"structured": written(t, binding.WithForceStructured(context.Background()), sent),
			"binary":     written(t, binding.WithForceBinary(context.Background()), sent),
			"batched":    batched(t, sent),
		} {
			p := clouds(string(bodyOf(t, request)))
			p.Header = request.Header
			if len(p.Body) == 0 {
				continue // data is required in binary mode
			}
			events := testkit.Value(Read(p))(t)
			testkit.MustEqual(t, len(events), 1, "%s", name)
			var e Envelope
			testkit.Must(t, e.Scan(CloudEventForm, events[0]))
			for how, got := range delivered(t, &e) {
				if diff := cmp.Diff(entries(sent), entries(got)); diff != "" || got.Validate() != nil {
					t.Fatalf("sent %s, stored %s, delivered %s: %v %s", name, events[0], how, got.Validate(), diff)
				}
			}
		}
	})
}

func written(t *rapid.T, ctx context.Context, e ce.Event) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://localhost/", nil)
	if err == nil {
		err = cehttp.WriteRequest(ctx, binding.ToMessage(&e), r)
	}
	testkit.Must(t, err)
	return r
}

func batched(t *rapid.T, e ce.Event) *http.Request {
	r := testkit.Value(cehttp.NewHTTPRequestFromEvents(context.Background(), "http://localhost/", []ce.Event{e}))(t)
	return r
}

func bodyOf(t *rapid.T, r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	body := testkit.Value(io.ReadAll(r.Body))(t)
	return body
}

// fataler is what tests and properties have in common.
type fataler interface {
	testkit.T
	Fatalf(format string, args ...any)
}

// delivered is an event as the SDK reads it from our deliveries.
func delivered(t fataler, e *Envelope) map[string]ce.Event {
	one := testkit.Value(AppendEvent(nil, e, CloudEvents))(t)
	many, _ := AppendEvent([]byte{'['}, e, CloudEvents)
	header, body, err := Binary(e)
	testkit.Must(t, err)
	structured := receive(t, http.Header{"Content-Type": {ContentType(CloudEvents, false)}}, one)
	batch, err := binding.ToEvents(context.Background(), cehttp.NewMessage(http.Header{"Content-Type": {ContentType(CloudEvents, true)}}, nil),
		bytes.NewReader(append(many, ']')))
	if err != nil || len(batch) != 1 {
		t.Fatalf("batch %s]: %d events, %v", many, len(batch), err)
	}
	return map[string]ce.Event{"structured": structured, "batched": batch[0], "binary": receive(t, header, body)}
}

func receive(t fataler, header http.Header, body []byte) ce.Event {
	e, err := binding.ToEvent(context.Background(), cehttp.NewMessage(header, io.NopCloser(bytes.NewReader(body))))
	if err != nil {
		t.Fatalf("%v %s: %v", header, body, err)
	}
	return *e
}

// entries is what an event says, whichever way it came. Types of extensions are lost in headers.
func entries(e ce.Event) map[string]string {
	m := map[string]string{"id": e.ID(), "source": e.Source(), "type": e.Type(), "subject": e.Subject(), "time": e.Time().UTC().String(), "schema": e.DataSchema(), "data": string(e.Data())}
	if e.DataContentType() == ce.ApplicationJSON {
		var v any
		_ = json.Unmarshal(e.Data(), &v)
		canonical, _ := json.Marshal(v)
		m["data"] = string(canonical)
	}
	for name, value := range e.Extensions() {
		text, _ := json.Marshal(value)
		m["."+name] = string(bytes.Trim(text, `"`))
	}
	return m
}

// G9: reference §7: the SDK reads an Event Grid event that was converted. It calls it valid where
// there is no data version: the '#1.0' that Event Grid makes of one is no absolute URI.
func TestTheCloudEventsSDKReadsConvertedEvents(t *testing.T) {
	for _, stored := range []string{
		`{"id":"1","subject":"/a","eventType":"t","eventTime":"2017-08-10T21:03:07+0000","dataVersion":"1.0","data":{"a":1}}`,
		`{"id":"1","subject":"/a","eventType":"t","eventTime":"2017-08-10 21:03:07","dataVersion":"1.0","data":{"a":1}}`,
	} {
		want := map[string]string{
			"id": "1", "source": topicID, "type": "t", "subject": "/a", "time": "2017-08-10 21:03:07 +0000 UTC", "schema": "#1.0", "data": `{"a":1}`,
		}
		for how, got := range delivered(t, scanned(t, EventGridForm, stored)) {
			testkit.Equal(t, cmp.Diff(want, entries(got)), "", "%s", how)
		}
	}
	bare := scanned(t, EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03Z"}`)
	for how, got := range delivered(t, bare) {
		if got.Validate() != nil || got.Subject() != "" || got.DataSchema() != "" || len(got.Data()) != 0 || got.Time().Minute() != 3 {
			t.Errorf("%s: %v", how, got)
		}
	}
}

// G9: extensions keep their JSON type in structured mode.
func TestTheCloudEventsSDKReadsTypedExtensions(t *testing.T) {
	stored := mustRead(t, clouds(`{"n":5,"b":true,"s":"x","specversion":"1.0","id":"1","source":"/s","type":"t","data":{}}`))[0]
	got := delivered(t, scanned(t, CloudEventForm, stored))["structured"]
	testkit.Diff(t, map[string]any{"n": int32(5), "b": true, "s": "x"}, got.Extensions())
}

// G9: any Event Grid event that is taken is delivered as it was sent.
func TestEventGridEventsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := map[string]any{
			"id": "x" + rapid.String().Draw(t, "id"), "subject": rapid.String().Draw(t, "subject"), "eventType": "t" + rapid.String().Draw(t, "type"),
			"eventTime": "2017-08-10T21:03:07Z", "data": rapid.MapOf(rapid.String(), rapid.Float64()).Draw(t, "data"),
		}
		body := testkit.Value(json.Marshal([]any{sent}))(t)
		events := testkit.Value(Read(grid(string(body))))(t)
		e := Envelope{Topic: topicID}
		testkit.Must(t, e.Scan(EventGridForm, events[0]))
		out := testkit.Value(AppendEvent(nil, &e, EventGrid))(t)
		sent["topic"], sent["dataVersion"], sent["metadataVersion"] = topicID, "", "1"
		want, _ := json.Marshal(sent)
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(out, &b) != nil || !cmp.Equal(a, b) {
			t.Fatalf("delivered %s, want %s", out, want)
		}
	})
}
