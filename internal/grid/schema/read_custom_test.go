package schema

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G9: the mapping of reference §18.
func orderMapping() Mapping {
	return Mapping{
		ID: Field{Source: "orderId"}, EventTime: Field{Source: "at"}, EventType: Field{"kind", "order"}, Subject: Field{"path", "none"},
		DataVersion: Field{Default: "1.0"},
	}
}

// G9: reference §6.3.
func TestCustomEventsAreMapped(t *testing.T) {
	for _, c := range []struct {
		name         string
		mapping      Mapping
		sent, stored string
	}{
		{
			"all fields are there", orderMapping(), `{ "orderId":"42", "at":"2017-08-10T21:03:07Z", "kind":"placed", "path":"/a\u002fb", "x":{"y":1} }`,
			`{"id":"42","subject":"/a\u002fb","eventType":"placed","eventTime":"2017-08-10T21:03:07Z","dataVersion":"1.0","data":{ "orderId":"42", "at":"2017-08-10T21:03:07Z", "kind":"placed", "path":"/a\u002fb", "x":{"y":1} }}`,
		},
		{
			"defaults stand in", orderMapping(), `{"orderId":"42","at":"2017-08-10T21:03:07Z","path":null}`,
			`{"id":"42","subject":"none","eventType":"order","eventTime":"2017-08-10T21:03:07Z","dataVersion":"1.0","data":{"orderId":"42","at":"2017-08-10T21:03:07Z","path":null}}`,
		},
		{
			"numbers and booleans become text", orderMapping(), `{"orderId":42,"at":"2017-08-10T21:03:07Z","kind":true}`,
			`{"id":"42","subject":"none","eventType":"true","eventTime":"2017-08-10T21:03:07Z","dataVersion":"1.0","data":{"orderId":42,"at":"2017-08-10T21:03:07Z","kind":true}}`,
		},
		{
			"nothing is mapped", Mapping{}, `{}`,
			`{"id":"made-up","subject":"","eventType":"Eventyard.Custom.Event","eventTime":"2026-11-15T12:00:00.1234567Z","data":{}}`,
		},
		{
			"one field for two", Mapping{EventType: Field{Source: "k"}, Subject: Field{Source: "k"}}, `{"k":"v","id":7}`,
			`{"id":"made-up","subject":"v","eventType":"v","eventTime":"2026-11-15T12:00:00.1234567Z","data":{"k":"v","id":7}}`,
		},
		{
			"the topic's name", Mapping{Topic: Field{Source: "t"}}, `{"t":"orders"}`,
			`{"id":"made-up","subject":"","eventType":"Eventyard.Custom.Event","eventTime":"2026-11-15T12:00:00.1234567Z","data":{"t":"orders"}}`,
		},
		{
			"other members may stand there twice", Mapping{}, `{"x":1,"x":2}`,
			`{"id":"made-up","subject":"","eventType":"Eventyard.Custom.Event","eventTime":"2026-11-15T12:00:00.1234567Z","data":{"x":1,"x":2}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := publish(Custom, "application/json", "["+c.sent+"]")
			p.Mapping = c.mapping
			wantStored(t, p, c.stored)
			// Delivered as custom it is what was sent, byte for byte.
			out := testkit.Value(AppendEvent(nil, scanned(t, EventGridForm, c.stored), Custom))(t)
			testkit.Equal(t, string(out), c.sent, "delivered")
		})
	}
}

// G9: reference §6.3.
func TestCustomEventsAreChecked(t *testing.T) {
	topic := Mapping{Topic: Field{Source: "t"}}
	for _, c := range []struct {
		name        string
		mapping     Mapping
		event, want string
	}{
		{"a mapped field is missing", orderMapping(), `{"at":"2017-08-10T21:03:07Z"}`, "'orderId' is missing, which is mapped to 'id'"},
		{"a mapped field is null", orderMapping(), `{"orderId":null,"at":"2017-08-10T21:03:07Z"}`, "'orderId' is missing"},
		{"a mapped field is an object", orderMapping(), `{"orderId":{},"at":"2017-08-10T21:03:07Z"}`, "'orderId' is mapped to 'id' and has to be a string"},
		{"a mapped field is empty", orderMapping(), `{"orderId":"","at":"2017-08-10T21:03:07Z"}`, "'orderId' is empty"},
		{"a mapped field is there twice", orderMapping(), `{"orderId":"1","orderId":"2","at":"2017-08-10T21:03:07Z"}`, "'orderId' is there twice"},
		{"a time that is none", orderMapping(), `{"orderId":"1","at":"soon"}`, "'at' is 'soon', which is not a date-time"},
		{"a time that is a number", orderMapping(), `{"orderId":"1","at":1502399000}`, "not a date-time"},
		{"another topic", topic, `{"t":"others"}`, "not the topic that it was sent to"},
		{"no topic", topic, `{}`, "'t' is missing"},
		{"no object", Mapping{}, `[]`, "a JSON object is expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := publish(Custom, "application/json", "["+c.event+"]")
			p.Mapping = c.mapping
			wantRefused(t, p, codeJSON, "events[0]: ", c.want)
		})
	}
}

func TestEveryCustomEventHasAnIDOfItsOwn(t *testing.T) {
	p := publish(Custom, "application/json", `[{},{}]`)
	p.NewID = nil
	got := mustRead(t, p)
	first, second := scanned(t, EventGridForm, got[0]), scanned(t, EventGridForm, got[1])
	if len(first.ID) < 16 || string(first.ID) == string(second.ID) {
		t.Errorf("the ids are %q and %q", first.ID, second.ID)
	}
}
