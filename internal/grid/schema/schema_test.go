package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G9: people and programs write the names of schemas in many ways.
func TestSchemasHaveManyNames(t *testing.T) {
	for text, want := range map[string]Kind{
		"eventgrid": EventGrid, "EventGridSchema": EventGrid, "eventgridschema": EventGrid,
		"cloudevents": CloudEvents, "CloudEventSchemaV1_0": CloudEvents, "CLOUDEVENTSCHEMAV1_0": CloudEvents,
		"custom": Custom, "CustomEventSchema": Custom, "CustomInputSchema": Custom, " custom ": Custom,
	} {
		t.Run(text, func(t *testing.T) {
			testkit.Equal(t, testkit.Value(ParseKind(text))(t), want, "%q", text)
		})
	}
	for _, text := range []string{"", "avro", "eventgrid2"} {
		if got, err := ParseKind(text); err == nil {
			t.Errorf("%q was taken for %q", text, got)
		}
	}
	for _, k := range []Kind{EventGrid, CloudEvents, Custom} {
		for _, name := range []string{string(k), k.InputName(), k.OutputName()} {
			testkit.Equal(t, testkit.Value(ParseKind(name))(t), k, "%q, which %q calls itself", name, k)
		}
	}
	if in, out := Custom.InputName(), Custom.OutputName(); in != "CustomEventSchema" || out != "CustomInputSchema" {
		t.Errorf("a custom topic has %s, a subscription %s", in, out)
	}
}

// G9: reference §7.
func TestWhatCanBeDeliveredAsWhat(t *testing.T) {
	for _, c := range []struct {
		in, out Kind
		hub     bool
		wrong   string // part of the reason, empty: it can
	}{
		{EventGrid, EventGrid, false, ""},
		{EventGrid, CloudEvents, false, ""},
		{EventGrid, Custom, false, "needs a topic with CustomEventSchema"},
		{CloudEvents, EventGrid, false, "no place for extension attributes"},
		{CloudEvents, CloudEvents, false, ""},
		{CloudEvents, Custom, false, "needs a topic with CustomEventSchema"},
		{Custom, EventGrid, false, ""},
		{Custom, CloudEvents, false, ""},
		{Custom, Custom, false, ""},
		{CloudEvents, EventGrid, true, ""},
		{CloudEvents, CloudEvents, true, ""},
		{CloudEvents, Custom, true, "events of a hub"},
		{EventGrid, "", false, "use eventgrid"},
	} {
		t.Run(fmt.Sprintf("%s as %q, hub %t", c.in, c.out, c.hub), func(t *testing.T) {
			err := Compatible(c.in, c.out, c.hub)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
	for _, in := range []Kind{EventGrid, CloudEvents, Custom} {
		testkit.Check(t, Compatible(in, DefaultOutput(in), false), "the default is not possible")
	}
}

// G9: reference §9.
func TestContentTypesOfDeliveries(t *testing.T) {
	for _, c := range []struct {
		out     Kind
		batched bool
		want    string
	}{
		{EventGrid, false, "application/json; charset=utf-8"},
		{EventGrid, true, "application/json; charset=utf-8"},
		{Custom, false, "application/json; charset=utf-8"},
		{CloudEvents, false, "application/cloudevents+json; charset=utf-8"},
		{CloudEvents, true, "application/cloudevents-batch+json; charset=utf-8"},
	} {
		t.Run(fmt.Sprintf("%s, batched %t", c.out, c.batched), func(t *testing.T) {
			testkit.Equal(t, ContentType(c.out, c.batched), c.want)
		})
	}
}

// G9
func TestMappingsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		mapping Mapping
		wrong   string
	}{
		"nothing mapped":          {Mapping{}, ""},
		"sources and defaults":    {Mapping{ID: Field{Source: "orderId"}, Subject: Field{"path", "none"}, DataVersion: Field{Default: "1.0"}}, ""},
		"an id for all":           {Mapping{ID: Field{Default: "1"}}, "mapping of id"},
		"a time for all":          {Mapping{EventTime: Field{"at", "2020-01-01T00:00:00Z"}}, "mapping of eventTime"},
		"a topic for all":         {Mapping{Topic: Field{Default: "x"}}, "mapping of topic"},
		"as long as may be":       {Mapping{Subject: Field{strings.Repeat("s", 1024), strings.Repeat("d", 1024)}}, ""},
		"a default without end":   {Mapping{Subject: Field{Default: strings.Repeat("d", 1025)}}, "mapping of subject"},
		"a source without end":    {Mapping{ID: Field{Source: strings.Repeat("s", 1025)}}, "mapping of id"},
		"a source that is binary": {Mapping{Subject: Field{Source: "\xff"}}, "mapping of subject"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.mapping.Check()
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v; want %q", name, err, c.wrong)
			}
		})
	}
}
