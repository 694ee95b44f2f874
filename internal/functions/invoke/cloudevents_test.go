package invoke

import (
	"encoding/json"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: each event carries a stable id and its attempt.
func TestEventsAreSentAsCloudEvents(t *testing.T) {
	const (
		id       = `[{"specversion":"1.0","id":"billing/orders/3/17"`
		plain    = id + `,"source":"/hubs/orders/partitions/3","type":"Eventyard.Hub.Event"`
		at       = `,"time":"2026-11-15T12:00:00.1230000Z"`
		position = `,"hub":"orders","partition":"3","sequence":"17","attempt":2`
		simply   = plain + at + position
		theirs   = `{"specversion":"1.0","id":"a-1","source":"/shop","type":"placed","subject":"s","time":"2026-01-02T03:04:05Z"`
		passed   = id + `,"source":"/shop","type":"placed","subject":"s","time":"2026-01-02T03:04:05Z","originalid":"a-1"`
	)
	structured := func(rest string) event.Event {
		return event.Event{Body: []byte(theirs + rest), ContentType: "application/cloudevents+json"}
	}
	keyed := structured(`,"partitionkey":"their key"}`)
	keyed.Key = "k"
	for _, c := range []struct {
		name  string
		event event.Event
		want  string
	}{
		{"JSON that does not say so", event.Text(`{"n": 1}`), simply + `,"data":{"n": 1}}]`},
		{"JSON that says so", event.Event{Body: []byte(`[1]`), ContentType: "application/json"}, simply + `,"datacontenttype":"application/json","data":[1]}]`},
		{"JSON that says so, and is none", event.Event{Body: []byte(`{`), ContentType: "application/json"}, simply + `,"datacontenttype":"application/json","data_base64":"ew=="}]`},
		{"text that does not say so", event.Text("a \"line\"\n"), simply + `,"datacontenttype":"text/plain","data":"a \"line\"\n"}]`},
		{"text that looks like JSON", event.Event{Body: []byte(`42`), ContentType: "text/plain; charset=utf-8"}, simply + `,"datacontenttype":"text/plain; charset=utf-8","data":"42"}]`},
		{"XML", event.Event{Body: []byte(`<a/>`), ContentType: "application/atom+xml"}, simply + `,"datacontenttype":"application/atom+xml","data":"<a/>"}]`},
		{"text that is no UTF-8", event.Event{Body: []byte("\xff"), ContentType: "text/plain"}, simply + `,"datacontenttype":"text/plain","data_base64":"/w=="}]`},
		{"bytes that do not say so", event.Bytes([]byte{0, 'a'}), simply + `,"data_base64":"AGE="}]`},
		{"bytes that say so", event.Event{Body: []byte(`hello`), ContentType: "application/octet-stream"}, simply + `,"datacontenttype":"application/octet-stream","data_base64":"aGVsbG8="}]`},
		{"nothing", event.Text(""), simply + `}]`},
		{"a value", event.Event{Value: event.Map{{Key: event.Symbol("a"), Value: int32(1)}}}, simply + `,"data":{"a":1}}]`},
		{"a key", event.Event{Body: []byte(`1`), Key: "k\x00"}, plain + `,"subject":"k\u0000"` + at + `,"partitionkey":"k\u0000"` + position + `,"data":1}]`},

		{"a structured CloudEvent", structured(`,"region":"eu","data":{"a" :1}}`), passed + `,"region":"eu"` + position + `,"data":{"a" :1}}]`},
		{"a structured CloudEvent of text in base64", structured(`,"datacontenttype":"text/plain","data_base64":"aGVsbG8="}`), passed + position + `,"datacontenttype":"text/plain","data_base64":"aGVsbG8="}]`},
		{"one with a schema", structured(`,"dataschema":"urn:1","data":null}`), id + `,"source":"/shop","type":"placed","subject":"s","time":"2026-01-02T03:04:05Z","dataschema":"urn:1","originalid":"a-1"` + position + `,"data":null}]`},
		{"one that uses our names", structured(`,"sequence":"x","attempt":9,"hub":"h","partition":"p","partitionkey":"their key"}`),
			passed + `,"originalsequence":"x","originalattempt":9,"originalhub":"h","originalpartition":"p","partitionkey":"their key"` + position + `}]`},
		{"one with a key beside the hub's", keyed, passed + `,"originalpartitionkey":"their key","partitionkey":"k"` + position + `}]`},
		{"one that has been here before", structured(`,"originalid":"older","originalhub":"older","originalsequence":"kept","hub":"h"}`),
			passed + `,"originalsequence":"kept","originalhub":"h"` + position + `}]`},
		{"what claims to be one", event.Event{Body: []byte(`{"id":"1"}`), ContentType: "application/cloudevents+json"},
			simply + `,"datacontenttype":"application/cloudevents+json","data":{"id":"1"}}]`},
		{"a CloudEvent in binary mode", event.Event{
			Body: []byte(`hello`), ContentType: "text/plain",
			Properties: map[string]any{"cloudEvents:specversion": "1.0", "cloudEvents:id": "a-1", "cloudEvents:source": "/shop", "cloudEvents:type": "placed", "cloudEvents:n": int32(5)},
		}, id + `,"source":"/shop","type":"placed"` + at + `,"originalid":"a-1","n":5` + position + `,"datacontenttype":"text/plain","data":"hello"}]`},
		{"one in binary mode without an id", event.Event{Body: []byte(`1`), Properties: map[string]any{"cloudEvents:specversion": "1.0"}}, simply + `,"data":1}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := written(t, CloudEvents, callOf(c.event))
			testkit.Equal(t, got, c.want, "wrote")
			wantSDKToRead(t, got)
		})
	}
}

// wantSDKToRead has the CloudEvents project's own library read a batch.
func wantSDKToRead(t *testing.T, batch string) {
	t.Helper()
	var events []cloudevents.Event
	testkit.Must(t, json.Unmarshal([]byte(batch), &events))
	for _, e := range events {
		testkit.Check(t, e.Validate())
		if e.ID() != "billing/orders/3/17" || e.Extensions()["sequence"] != "17" || e.Extensions()["attempt"] != int32(2) {
			t.Errorf("the SDK reads id %s and %v", e.ID(), e.Extensions())
		}
	}
}

func TestABatchHasTheEventsInOrder(t *testing.T) {
	var got []struct{ ID, Sequence string }
	testkit.Must(t, json.Unmarshal([]byte(written(t, CloudEvents, threeEvents())), &got))
	if len(got) != 3 || got[0].ID != "billing/orders/3/17" || got[1].ID != "billing/orders/3/18" || got[2].Sequence != "19" {
		t.Errorf("wrote %+v", got)
	}
}
