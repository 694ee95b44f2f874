package schema

import (
	"fmt"
	"strings"
	"testing"
)

// G9: reference §3, §6.2.
func TestCloudEventsAreStored(t *testing.T) {
	for _, c := range []struct{ name, sent, stored string }{
		{
			"data goes to the end, extensions keep their types",
			`{"data":{"x": 1.0}, "id":"1", "number":5, "flag":true, "source":"/s", "specversion":"1.0", "type":"t", "Upper_case-1":"\u00e9", "list":[1, 2]}`,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","number":5,"flag":true,"Upper_case-1":"\u00e9","list":[1, 2],"data":{"x": 1.0}}`,
		},
		{
			"all attributes",
			`{"dataschema":"#1","datacontenttype":"application/json","subject":"s","time":"2017-08-10T21:03:07.123456789+01:00","type":"t","source":"/s","id":"1","specversion":"1.0","data":null}`,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"s","time":"2017-08-10T21:03:07.123456789+01:00","dataschema":"#1","datacontenttype":"application/json","data":null}`,
		},
		{
			"null is as good as absent",
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":null,"time":null,"ext":null,"data_base64":null}`,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t"}`,
		},
		{
			"binary data, with an escaped slash",
			`{"specversion":"1.0","id":"1","source":"/s","data_base64":"ab\/+","type":"t"}`,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"ab/+"}`,
		},
		{
			"the event's own content type for its data, as one client sends it",
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"application/cloudevents+json; charset=utf-8","data":"x"}`,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"application/cloudevents+json; charset=utf-8","data":"x"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range []Publication{
				publish(CloudEvents, mediaCloudEvent, c.sent), publish(CloudEvents, mediaBatch, "["+c.sent+"]"), clouds(c.sent), clouds("[" + c.sent + "]"),
			} {
				wantStored(t, p, c.stored)
			}
		})
	}
}

// G9
func TestCloudEventsAreChecked(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"x%d":1`, i)
		}
		return b.String()
	}
	const base = `"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for _, c := range []struct{ name, event, want string }{
		{"nothing", `{}`, "'specversion' is missing"},
		{"no id", `{"specversion":"1.0","source":"/s","type":"t"}`, "'id' is missing"},
		{"an empty source", `{"specversion":"1.0","id":"1","source":"","type":"t"}`, "'source' is missing or empty"},
		{"null as the type", `{"specversion":"1.0","id":"1","source":"/s","type":null}`, "'type' is missing"},
		{"an older version", `{"specversion":"0.3","id":"1","source":"/s","type":"t"}`, "has to be '1.0'"},
		{"a version that is a number", `{"specversion":1.0,"id":"1","source":"/s","type":"t"}`, "'specversion' has to be a string"},
		{"a number as the id", `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`, "'id' has to be a string"},
		{"a time without a zone", `{` + base + `,"time":"2017-08-10T21:03:07"}`, "not a date-time"},
		{"an empty time", `{` + base + `,"time":""}`, "not a date-time"},
		{"a subject that is a number", `{` + base + `,"subject":1}`, "'subject' has to be a string"},
		{"a content type with a line break", `{` + base + `,"datacontenttype":"text/plain\r\nx: y"}`, "not a media type"},
		{"base64 that is none", `{` + base + `,"data_base64":"a"}`, "not base64"},
		{"base64 with padding inside", `{` + base + `,"data_base64":"a=bc"}`, "not base64"},
		{"base64 for URLs", `{` + base + `,"data_base64":"ab_-"}`, "not base64"},
		{"base64 that is a number", `{` + base + `,"data_base64":1}`, "'data_base64' has to be a string"},
		{"data twice over", `{` + base + `,"data_base64":"","data":1}`, "both 'data' and 'data_base64'"},
		{"null as data and base64", `{` + base + `,"data":null,"data_base64":"ab=="}`, "both 'data' and 'data_base64'"},
		{"an extension twice", `{` + base + `,"x":1,"y":2,"x":3}`, "'x' is there twice"},
		{"an attribute twice", `{` + base + `,"id":"2"}`, "'id' is there twice"},
		{"an extension without a name", `{` + base + `,"":1}`, "cannot be an extension"},
		{"an extension that no header can name", `{` + base + `,"a b":1}`, "cannot be an extension"},
		{"too many extensions", `{` + base + many(maxExtensions+1) + `}`, "more than 128 extension"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRefused(t, publish(CloudEvents, mediaBatch, "["+cloudEvent+","+c.event+"]"), codeJSON, "events[1]: ", c.want)
		})
	}
	mustRead(t, clouds(`{`+base+many(maxExtensions)+`}`))
}
