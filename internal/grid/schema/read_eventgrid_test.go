package schema

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G9: reference §6.1.
func TestEventGridEventsAreStored(t *testing.T) {
	for _, c := range []struct{ name, sent, stored string }{
		{
			"all that there is, in any order",
			`{"data": {"b" : [1, 2.50] , "a":"\u00e9"}, "topic": "` + topicID + `", "eventTime":"2017-08-10T21:03:07.1234567Z", "metadataVersion":"1",
			  "id":"1", "dataVersion":"2.0", "eventType":"t", "subject":"s"}`,
			`{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07.1234567Z","dataVersion":"2.0","data":{"b" : [1, 2.50] , "a":"\u00e9"}}`,
		},
		{
			"no more than is needed",
			`{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07+0000"}`,
			`{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07+0000"}`,
		},
		{
			"the topic by its name, in any case",
			`{"topic":"Orders","id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`,
			`{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`,
		},
		{
			"null for what may be left out",
			`{"topic":null,"dataVersion":null,"metadataVersion":null,"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":null}`,
			`{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":null}`,
		},
		{
			"escapes stay as they are",
			`{"\u0069d":"\u0031\"","subject":"\/a","eventType":"t","eventTime":"2017-08-10T21:03:07\u005a","data":"x"}`,
			`{"id":"\u0031\"","subject":"\/a","eventType":"t","eventTime":"2017-08-10T21:03:07\u005a","data":"x"}`,
		},
		{
			"members of data may stand there twice",
			`{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":{"a":1,"a":2}}`,
			`{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":{"a":1,"a":2}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantStored(t, grid("["+c.sent+"]"), c.stored)
			wantStored(t, grid(c.sent), c.stored)
		})
	}
}

func TestEventsOfAnArrayKeepTheirOrder(t *testing.T) {
	second := strings.Replace(gridEvent, `"id":"1"`, `"id":"2"`, 1)
	testkit.Slices(t, mustRead(t, grid(" [ "+gridEvent+" ,\n"+second+" ] ")), []string{gridEvent, second})
}

// G9, G12: reference §5, §6.1. What is missing is reported in the order subject, id, eventType,
// eventTime.
func TestEventGridEventsAreChecked(t *testing.T) {
	for _, c := range []struct{ name, event, want string }{
		{"nothing", `{}`, "'subject' is missing"},
		{"a subject only", `{"subject":"s"}`, "'id' is missing"},
		{"no type", `{"subject":"s","id":"1"}`, "'eventType' is missing"},
		{"no time", `{"subject":"s","id":"1","eventType":"t"}`, "'eventTime' is missing"},
		{"no subject", `{"id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'subject' is missing"},
		{"null as the id", `{"subject":"s","id":null,"eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'id' is missing"},
		{"an empty id", `{"subject":"s","id":"","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'id' is missing or empty"},
		{"a number as the id", `{"subject":"s","id":1,"eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'id' has to be a string"},
		{"an object as the subject", `{"subject":{},"id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'subject' has to be a string"},
		{"a time that is none", `{"subject":"s","id":"1","eventType":"t","eventTime":"now"}`, "'eventTime' is 'now', which is not a date-time"},
		{"an unknown property", `{"subject":"s","id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z","extra":1}`, "no property 'extra'"},
		{"a property in another case", `{"Subject":"s"}`, "no property 'Subject'"},
		{"another topic", `{"topic":"/other","subject":"s","id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'/other', which is not the topic"},
		{"another metadata version", `{"metadataVersion":"2","subject":"s","id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'metadataVersion' is '2'"},
		{"a metadata version that is a number", `{"metadataVersion":1,"subject":"s","id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'metadataVersion' has to be a string"},
		{"a data version that is a number", `{"dataVersion":1,"subject":"s","id":"1","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, "'dataVersion' has to be a string"},
		{"an id twice", `{"id":"1","subject":"s","id":"1"}`, "'id' is there twice"},
		{"an id twice, once as null and escaped", `{"id":null,"\u0069d":"1"}`, "'id' is there twice"},
		{"data twice", `{"data":1,"data":2}`, "'data' is there twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantRefused(t, grid("["+gridEvent+","+c.event+"]"), codeJSON, "events[1]: ", c.want)
			if alone := refused(t, grid(c.event)); strings.Contains(alone.Message, "events[") {
				t.Errorf("a lone event has no number: %v", alone)
			}
		})
	}
}
