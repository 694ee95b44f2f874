package schema

import (
	"fmt"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// texts is what an envelope says, for comparing.
func texts(e *Envelope) map[string]string {
	m := map[string]string{}
	for name, t := range map[string][]byte{
		"id": e.ID, "subject": e.Subject, "type": e.Type, "time": e.Time, "source": e.Source, "dataVersion": e.DataVersion,
		"dataSchema": e.DataSchema, "contentType": e.ContentType, "data": e.Data, "base64": e.Base64,
	} {
		if t != nil {
			m[name] = string(t)
		}
	}
	for _, x := range e.Extensions {
		m["."+string(x.Name)] = string(x.Value)
	}
	return m
}

// G9
func TestScanSeesWhatIsStored(t *testing.T) {
	for _, c := range []struct {
		name   string
		form   Form
		stored string
		want   map[string]string
	}{
		{
			"Event Grid", EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"now","dataVersion":"2","data":{"a":[1,"}"]}}`,
			map[string]string{"id": "1", "subject": "", "type": "t", "time": "now", "dataVersion": "2", "data": `{"a":[1,"}"]}`},
		},
		{
			"Event Grid without data", EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now"}`,
			map[string]string{"id": "1", "subject": "s", "type": "t", "time": "now"},
		},
		{
			"escapes", EventGridForm, `{"id":"\u0031\n","subject":"\ud83d\ude00\/","eventType":"\ud800","eventTime":"now","data":"\u0031"}`,
			map[string]string{"id": "1\n", "subject": "😀/", "type": "\ufffd", "time": "now", "data": `"\u0031"`},
		},
		{
			"CloudEvents", CloudEventForm,
			`{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"x","time":"now","dataschema":"#1","datacontenttype":"a/b","n":5,"s":"v","data":null}`,
			map[string]string{
				"id": "1", "source": "/s", "type": "t", "subject": "x", "time": "now", "dataSchema": "#1", "contentType": "a/b", ".n": "5", ".s": `"v"`, "data": "null",
			},
		},
		{
			"binary data", CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"aGVsbG8="}`,
			map[string]string{"id": "1", "source": "/s", "type": "t", "base64": "aGVsbG8="},
		},
		{
			"space, from somebody who wrote it by hand", EventGridForm, "{ \"id\" : \"1\" , \"subject\": \"s\",\n\"eventType\":\"t\",\"eventTime\":\"now\", \"data\": { } \n}",
			map[string]string{"id": "1", "subject": "s", "type": "t", "time": "now", "data": "{ }"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := scanned(t, c.form, c.stored)
			testkit.Diff(t, c.want, texts(e))
			testkit.Slices(t, []any{e.Form, string(e.Raw), e.Topic}, []any{c.form, c.stored, topicID}, "form")
		})
	}
}

func TestAnEnvelopeIsFilledAnew(t *testing.T) {
	e := scanned(t, CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"x","time":"now","x":5,"data":1}`)
	testkit.Must(t, e.Scan(EventGridForm, []byte(`{"id":"2","subject":"","eventType":"u","eventTime":"then"}`)))
	want := map[string]string{"id": "2", "subject": "", "type": "u", "time": "then"}
	testkit.Diff(t, want, texts(e))
	if e.Field("x") != nil || e.Field("source") == nil {
		t.Errorf("x is %s, source %s", e.Field("x"), e.Field("source"))
	}
}

func TestWhatIsNotStoredIsNotScanned(t *testing.T) {
	for _, c := range []struct {
		form   Form
		stored string
	}{
		{EventGridForm, ``}, {EventGridForm, `{`}, {EventGridForm, `{}`}, {EventGridForm, `[]`}, {EventGridForm, `null`}, {0, `{"id":"1"}`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t"}`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now","metadataVersion":"1"}`},
		{EventGridForm, `{"id":1,"subject":"s","eventType":"t","eventTime":"now"}`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now","data":1`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now","data":}`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now","data":`},
		{EventGridForm, `{"id":"1","subject":"s","eventType":"t","eventTime":"now"} ` + "x"},
		{CloudEventForm, `{"specversion":"1.0","id":"1","type":"t"}`},
		{CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","x":}`},
		{CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":1}`},
		{CloudEventForm, `{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"","data":1}`},
		{3, `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`},
	} {
		t.Run(fmt.Sprintf("%v %s", c.form, c.stored), func(t *testing.T) {
			var e Envelope
			testkit.ErrorIs(t, e.Scan(c.form, []byte(c.stored)), errNotStored)
		})
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	grid := stored(t, benchPublication(EventGrid, benchEventGrid(), 1))
	cloud := stored(t, benchPublication(CloudEvents, benchCloudEvent(), 1))
	e := Envelope{Topic: topicID}
	var dst []byte
	work := func() {
		_ = e.Scan(EventGridForm, grid)
		e.Field("subject")
		e.Field("data.customer.CITY")
		dst, _ = AppendEvent(dst[:0], &e, EventGrid)
		dst, _ = AppendEvent(dst[:0], &e, CloudEvents)
		_ = e.Scan(CloudEventForm, cloud)
		e.Field("traceParent")
		dst, _ = AppendEvent(dst[:0], &e, CloudEvents)
	}
	work()
	testkit.Equal(t, testing.AllocsPerRun(100, work), 0, "allocations")
}
