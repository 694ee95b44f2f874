package schema

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G10: reference §8.2, §16: what the keys of filters and delivery properties mean.
func TestFields(t *testing.T) {
	grid := scanned(t, EventGridForm,
		`{"id":"1","subject":"\/s","eventType":"t","eventTime":"now","dataVersion":"2","data":{"Key":1,"key":"two","nested":{"Deep":{"x":[1]}},"nested":0,"a.b":3,"n":null,"\u0065sc":true,"Größe":5}}`)
	bare := scanned(t, EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"now"}`)
	cloud := scanned(t, CloudEventForm,
		`{"specversion":"1.0","id":"1","source":"/src","type":"t","time":"now","dataschema":"#1","datacontenttype":"a/b","Tenant":5,"tenant":"x","eventtype":"mine","topic":null,"data":{"a":1}}`)
	binary := scanned(t, CloudEventForm, `{"specversion":"1.0","id":"1","source":"/src","type":"t","data_base64":"YQ=="}`)
	for _, c := range []struct {
		name string
		e    *Envelope
		want map[string]string // "": absent
	}{
		{"Event Grid", grid, map[string]string{
			"id": `"1"`, "ID": `"1"`, "eventId": `"1"`, "Subject": `"\/s"`, "eventType": `"t"`, "EVENTTYPE": `"t"`, "type": `"t"`, "eventTime": `"now"`, "dataVersion": `"2"`,
			"eventtypeversion": `"2"`, "metadataVersion": `"1"`, "topic": `"` + topicID + `"`, "source": `"` + topicID + `"`, "other": "", "": "",
			"a name that is longer than any of ours is": "", "dataschema": "",
		}},
		{"members of data", grid, map[string]string{
			"data.key": `"two"`, "Data.Key": "1", "data.KEY": "1", "data.nested.deep.x": "[1]", "data.nested.Deep": `{"x":[1]}`, "data.nested.deep.x.y": "", "data.n": "null",
			"data.a.b": "", "data.esc": "true", "data.ESC": "true", "data.größe": "5", "data.": "", "data.n.x": "", "data.missing": "", "data.nested.deep.missing": "",
		}},
		{"without data", bare, map[string]string{"data": "", "data.x": "", "dataVersion": `""`, "subject": `""`}},
		{"CloudEvents", cloud, map[string]string{
			"id": `"1"`, "eventid": `"1"`, "source": `"/src"`, "type": `"t"`, "Type": `"t"`, "time": `"now"`, "eventtime": `"now"`, "subject": "", "dataschema": `"#1"`, "datacontenttype": `"a/b"`,
			"eventtypeversion": `"#1"`, "specversion": `"1.0"`, "data": `{"a":1}`, "data.a": "1",
		}},
		{"extensions", cloud, map[string]string{"tenant": `"x"`, "Tenant": "5", "TENANT": "5", "eventtype": `"mine"`, "topic": "null", "other": ""}},
		{"binary data has no parts", binary, map[string]string{"data": "", "data.a": "", "topic": `"` + topicID + `"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for path, want := range c.want {
				if got := c.e.Field(path); string(got) != want || (got == nil) != (want == "") {
					t.Errorf("%s: %q is %q, want %q", c.name, path, got, want)
				}
			}
		})
	}
}

// Text and Field give the same, one as text, the other as JSON.
func TestTextsOfFields(t *testing.T) {
	for name := range fields {
		a, own, known := FindAttribute(name)
		testkit.Equal(t, known, name != "data", "%s is an attribute", name)
		for _, e := range []*Envelope{
			scanned(t, EventGridForm, `{"id":"1","subject":"\/s","eventType":"t","eventTime":"now","dataVersion":"2"}`),
			scanned(t, EventGridForm, `{"id":"1","subject":"","eventType":"t","eventTime":"now"}`),
			scanned(t, CloudEventForm, `{"specversion":"1.0","id":"1","source":"/src","type":"t","dataschema":"#1"}`),
		} {
			if raw := e.Field(name); known && raw != nil {
				text, isTopic := e.Text(a)
				if isTopic {
					text = []byte(e.Topic)
				}
				testkit.Equal(t, string(text), string(textOf(raw)), "%s in %v, own %t", name, e.Form, own)
			}
		}
	}
}

// Tests of other packages make envelopes by hand.
func TestFieldsOfAnEnvelopeThatWasNotScanned(t *testing.T) {
	e := Envelope{Form: EventGridForm, ID: []byte("1"), Subject: []byte(`a"b`), Type: []byte("t"), Time: []byte("2017-08-10T21:03:07Z"), Data: []byte(`{"a":1}`)}
	for path, want := range map[string]string{"subject": `"a\"b"`, "data.a": "1", "topic": "", "datacontenttype": ""} {
		t.Run(path, func(t *testing.T) {
			testkit.Equal(t, string(e.Field(path)), want, "%s", path)
		})
	}
	for _, out := range []Kind{EventGrid, CloudEvents} {
		testkit.Equal(t, object(t, testkit.Value(AppendEvent(nil, &e, out))(t))["subject"], `a"b`, "%s", out)
	}
}

// HasField and Field agree: where the first says no, no event has anything.
func TestFieldsThatAreNone(t *testing.T) {
	for _, path := range []string{"id", "Topic", "subject", "eventType", "EVENTTIME", "dataVersion", "metadataVersion", "source", "type", "time", "specversion", "eventid", "eventtypeversion", "data", "Data", "data.x", "DATA.x.y"} {
		testkit.Slices(t, []any{EventGridForm.HasField(path), CloudEventForm.HasField(path)}, []any{true, true}, "is none")
	}
	full := `{"id":"1","subject":"s","eventType":"t","eventTime":"2020-01-01T00:00:00Z","dataVersion":"1","data":{"total":1,"dataschema":2}}`
	var e Envelope
	testkit.Must(t, e.Scan(EventGridForm, []byte(full)))
	e.Topic = "/t"
	for _, path := range []string{"total", "customer.id", "dataschema", "datacontenttype", "data_base64", "data.", "dat", "databank.x", ""} {
		if EventGridForm.HasField(path) || e.Field(path) != nil {
			t.Errorf("%q is one: %s", path, e.Field(path))
		}
	}
	for _, path := range []string{"tenant", "a.b", "dataschema"} {
		if !CloudEventForm.HasField(path) {
			t.Errorf("a CloudEvent cannot have %s", path)
		}
	}
}
