package schema

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G9: reference §6.1, §7.
func TestEventGridEventsAreWritten(t *testing.T) {
	for _, c := range []struct {
		name, stored string
		out          Kind
		want         string
	}{
		{
			"as they are, with what is filled in", `{"id":"\u0031","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07+0000","dataVersion":"2.0","data":{"b" : [1, 2.50]}}`, EventGrid,
			`{"topic":"` + topicID + `","id":"\u0031","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07+0000","dataVersion":"2.0","metadataVersion":"1","data":{"b" : [1, 2.50]}}`,
		},
		{
			"all eight members are always there", `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`, EventGrid,
			`{"topic":"` + topicID + `","id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07Z","dataVersion":"","metadataVersion":"1","data":null}`,
		},
		{
			"as a CloudEvent", `{"id":"\u0031","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07+0000","dataVersion":"2.0","data":{"b" : [1, 2.50]}}`, CloudEvents,
			`{"specversion":"1.0","id":"\u0031","source":"` + topicID + `","type":"t","subject":"s","time":"2017-08-10T21:03:07+00:00","dataschema":"#2.0","datacontenttype":"application/json","data":{"b" : [1, 2.50]}}`,
		},
		{
			"as a CloudEvent without what is empty", `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10 21:03","dataVersion":""}`, CloudEvents,
			`{"specversion":"1.0","id":"1","source":"` + topicID + `","type":"t","time":"2017-08-10T21:03:00Z"}`,
		},
		{
			"as a CloudEvent whose schema has to be a reference", `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07Z","dataVersion":"é \"#%v2/x"}`, CloudEvents,
			`{"specversion":"1.0","id":"1","source":"` + topicID + `","type":"t","time":"2017-08-10T21:03:07Z","dataschema":"#%C3%A9%20%22%23%25v2/x"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Value(AppendEvent([]byte("["), scanned(t, EventGridForm, c.stored), c.out))(t)
			testkit.Equal(t, string(got), "["+c.want, "wrote")
		})
	}
}

// G9: a CloudEvent is delivered as it was published.
func TestCloudEventsAreWritten(t *testing.T) {
	const stored = `{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,"x_y":"\u00e9","data":{"b" : 1.0}}`
	e := scanned(t, CloudEventForm, stored)
	got := testkit.Value(AppendEvent(nil, e, CloudEvents))(t)
	testkit.Equal(t, string(got), stored, "wrote")
	e.Raw = nil // made by hand, the long way gives the same
	if got := appendCloudEvent(nil, &Envelope{Form: e.Form, ID: e.ID, Source: e.Source, Type: e.Type, Extensions: e.Extensions, Data: e.Data}, nil); string(got) != stored {
		t.Errorf("wrote %s", got)
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	cloud := scanned(t, CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`)
	bare := scanned(t, EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07Z"}`)
	for name, c := range map[string]struct {
		e   *Envelope
		out Kind
	}{
		"a CloudEvent as custom":                  {cloud, Custom},
		"a CloudEvent without time as Event Grid": {cloud, EventGrid},
		"custom without an original":              {bare, Custom},
		"another schema":                          {bare, "avro"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := AppendEvent([]byte("x"), c.e, c.out); err == nil || string(got) != "x" {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		})
	}
	if _, err := AppendDeadLetter(nil, bare, "avro", DeadLetter{}); err == nil {
		t.Error("a dead letter in another schema was written")
	}
}

// G9: reference §3; CloudEvents HTTP binding 3.1.
func TestBinaryMode(t *testing.T) {
	const base = `{"specversion":"1.0","id":"1","source":"/s","type":"t"`
	for _, c := range []struct {
		name   string
		form   Form
		stored string
		header map[string]string // besides those of base
		body   string
	}{
		{"JSON", CloudEventForm, base + `,"datacontenttype":"application/vnd.x+json; a=b","data":{"a" : 1}}`, map[string]string{"Content-Type": "application/vnd.x+json; a=b"}, `{"a" : 1}`},
		{"JSON that does not say so", CloudEventForm, base + `,"data":"text"}`, map[string]string{"Content-Type": "application/json"}, `"text"`},
		{"text", CloudEventForm, base + `,"datacontenttype":"text/xml","data":"<a>\u00e9<\/a>"}`, map[string]string{"Content-Type": "text/xml"}, `<a>é</a>`},
		{"an object that says it is XML", CloudEventForm, base + `,"datacontenttype":"text/xml","data":{}}`, map[string]string{"Content-Type": "text/xml"}, `{}`},
		{"bytes", CloudEventForm, base + `,"datacontenttype":"image/png","data_base64":"AP8="}`, map[string]string{"Content-Type": "image/png"}, "\x00\xff"},
		{"bytes of no type", CloudEventForm, base + `,"data_base64":"AP8="}`, nil, "\x00\xff"},
		{"no data", CloudEventForm, base + `}`, nil, ""},
		{"data with the event's own type", CloudEventForm, base + `,"datacontenttype":"application/cloudevents+json","data":[]}`, map[string]string{"Content-Type": "application/json"}, `[]`},
		{"bytes with the event's own type", CloudEventForm, base + `,"datacontenttype":"application/cloudevents+json","data_base64":"AP8="}`, map[string]string{"Content-Type": "application/octet-stream"}, "\x00\xff"},
		{
			"all attributes", CloudEventForm, base + `,"subject":"Euro € 😀 \"100%\" \n","time":"2017-08-10T21:03:07Z","dataschema":"#1","n":5,"b":true,"s":"\u0041","l":[1, "é"],"empty":""}`,
			map[string]string{
				"Ce-Subject": "Euro%20%E2%82%AC%20%F0%9F%98%80%20%22100%25%22%20%0A", "Ce-Time": "2017-08-10T21:03:07Z", "Ce-Dataschema": "#1", "Ce-N": "5", "Ce-B": "true", "Ce-S": "A",
				"Ce-L": "[1,%20%22%C3%A9%22]",
			}, "",
		},
		{
			"extensions that a header cannot tell from an attribute", CloudEventForm, base + `,"ID":"2","Source":"x","TYPE":"x","SpecVersion":"0.3","Time":"x","DataContentType":"x/y","Data":"x","Other":"kept"}`,
			map[string]string{"Ce-Other": "kept"}, "",
		},
		{
			"an Event Grid event", EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"2017-08-10T21:03:07+0000","dataVersion":"2 a","data":{}}`,
			map[string]string{"Ce-Source": topicID, "Ce-Time": "2017-08-10T21:03:07+00:00", "Ce-Dataschema": "#2%2520a", "Content-Type": "application/json"}, "{}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}}
			for name, value := range c.header {
				want.Set(name, value)
			}
			header, body, err := Binary(scanned(t, c.form, c.stored))
			testkit.Must(t, err)
			if diff := cmp.Diff(want, header); diff != "" || string(body) != c.body {
				t.Errorf("body %q, want %q\n%s", body, c.body, diff)
			}
		})
	}
	broken := scanned(t, CloudEventForm, base+`,"data_base64":"!"}`)
	if _, _, err := Binary(broken); err == nil {
		t.Error("data that is not base64 was decoded")
	}
}

// G9: what goes out in binary mode can come in again.
func TestBinaryModeComesBack(t *testing.T) {
	const sent = `{"specversion":"1.0","id":"a b","source":"/s?x=%25","type":"t","subject":"€ \"\\","time":"2017-08-10T21:03:07Z","datacontenttype":"application/json","s":"x","data":{"a" :1}}`
	header, body, err := Binary(scanned(t, CloudEventForm, sent))
	testkit.Must(t, err)
	p := clouds(string(body))
	p.Header = header
	testkit.Equal(t, mustRead(t, p)[0], sent, "came back as")
}

// Whoever appends to a slice that we gave must not write into its neighbour.
func TestStoredEventsDoNotOverlap(t *testing.T) {
	events := testkit.Value(Read(grid("[" + gridEvent + "," + gridEvent + "]")))(t)
	_ = append(events[0], "xxxxxxxx"...)
	if !bytes.Equal(events[1], []byte(gridEvent)) {
		t.Errorf("the neighbour became %s", events[1])
	}
}
