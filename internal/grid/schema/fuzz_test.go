package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// members decodes an object's members with the standard library, each by itself, so that
// what is kept byte for byte can be told.
func members(t testing.TB, raw []byte) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || !isValid(raw) {
		t.Fatalf("%q: %v", raw, err)
	}
	return m
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	testkit.MustSlices(t, got, want, "%s", what)
}

// plainText is the text of a raw string; nil for null and what is not there.
func plainText(t testing.TB, raw json.RawMessage) []byte {
	t.Helper()
	if raw == nil || string(raw) == "null" {
		return nil
	}
	var s string
	testkit.Must(t, json.Unmarshal(raw, &s), "%q", raw)
	return []byte(s)
}

var fuzzKinds = []Kind{EventGrid, CloudEvents, Custom}

// FuzzRead: nothing makes it panic, what it takes is JSON, stored with nothing lost, can be
// scanned, and is written as JSON that says the same.
func FuzzRead(f *testing.F) {
	for _, body := range append(jsonSeeds,
		"["+gridEvent+"]", gridEvent, cloudEvent, "["+cloudEvent+","+cloudEvent+"]", `[{"orderId":42,"at":"2017-08-10T21:03:07Z"}]`,
		`{"id":"1","subject":"\u0041\ud800","eventType":"t","eventTime":"2017-08-10T21:03:07","topic":null,"dataVersion":"","metadataVersion":"1","data":{"a":[null]}}`,
		`{"specversion":"1.0","id":"1","source":"/s","type":"t","x":null,"y":{"z":1},"data_base64":"aGVsbG8="}`,
		`{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"2017-08-10T21:03:07Z","datacontenttype":"text/plain","data":"\u0041"}`,
	) {
		for kind := range fuzzKinds {
			f.Add(byte(kind), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		p := publish(fuzzKinds[int(kind)%len(fuzzKinds)], "application/json", string(body))
		p.Mapping = orderMapping()
		events, err := Read(p)
		if err != nil {
			checkRefusal(t, err, body)
			return
		}
		originals := eventsOf(t, body)
		testkit.MustEqual(t, len(originals), len(events), "%d events were stored", len(events))
		e := Envelope{Topic: topicID}
		for i, stored := range events {
			testkit.Must(t, e.Scan(p.Kind.Form(), stored), "%s", stored)
			checkStored(t, p.Kind, originals[i], &e)
			checkWritten(t, p.Kind, &e)
		}
	})
}

func checkRefusal(t testing.TB, err error, body []byte) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) || input.Status == 0 || input.Code == "" || input.Message == "" {
		t.Fatalf("refused with %v", err)
	}
	if strings.Contains(input.Message, "not valid JSON") && !strings.Contains(input.Message, "levels deep") && isValid(body) {
		t.Fatalf("%q was refused: %v", body, err)
	}
}

// eventsOf takes a body apart with the standard library.
func eventsOf(t testing.TB, body []byte) []json.RawMessage {
	t.Helper()
	if !isValid(body) {
		t.Fatalf("%q was taken", body)
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); trimmed[0] == '{' {
		return []json.RawMessage{bytes.TrimRight(trimmed, " \t\r\n")}
	}
	var all []json.RawMessage
	testkit.Must(t, json.Unmarshal(body, &all))
	return all
}

// checkStored compares what was stored with what was sent.
func checkStored(t testing.TB, kind Kind, original json.RawMessage, e *Envelope) {
	t.Helper()
	sent, kept := members(t, original), members(t, e.Raw)
	switch kind {
	case Custom:
		same(t, "data", e.Data, original)
		return
	case EventGrid:
		delete(sent, "topic")
		delete(sent, "metadataVersion")
		same(t, "eventType", e.Type, plainText(t, sent["eventType"]))
		same(t, "eventTime", e.Time, plainText(t, sent["eventTime"]))
		same(t, "dataVersion", e.DataVersion, plainText(t, sent["dataVersion"]))
	case CloudEvents:
		same(t, "type", e.Type, plainText(t, sent["type"]))
		same(t, "source", e.Source, plainText(t, sent["source"]))
		same(t, "time", e.Time, plainText(t, sent["time"]))
		same(t, "data_base64", e.Base64, plainText(t, sent["data_base64"]))
		delete(sent, "data_base64") // may have had escapes
		delete(kept, "data_base64")
		for _, x := range e.Extensions {
			same(t, string(x.Name), x.Value, sent[string(x.Name)])
		}
	}
	same(t, "id", e.ID, plainText(t, sent["id"]))
	same(t, "subject", e.Subject, plainText(t, sent["subject"]))
	same(t, "data", e.Data, sent["data"])
	for name, raw := range sent {
		if string(raw) != "null" || name == "data" {
			same(t, name, kept[name], raw)
			delete(kept, name)
		}
	}
	if len(kept) > 0 {
		t.Fatalf("%s has more than was sent: %v", e.Raw, kept)
	}
}

// checkWritten writes an event in all schemas that it can have.
func checkWritten(t testing.TB, kind Kind, e *Envelope) {
	t.Helper()
	for _, out := range fuzzKinds {
		if Compatible(kind, out, false) != nil {
			continue
		}
		written, err := AppendEvent(nil, e, out)
		testkit.Must(t, err, "%s as %s", e.Raw, out)
		switch m := members(t, written); out {
		case EventGrid:
			checkEventGridMembers(t, e, m, 8)
		case CloudEvents:
			checkCloudEventMembers(t, e, m)
		case Custom:
			same(t, "the original", written, e.Data)
		}
		dead := testkit.Value(AppendDeadLetter(nil, e, out, DeadLetter{Reason: "r", LastStatus: 500, Published: now, LastAttempt: now}))(t)
		if m := members(t, dead); out == CloudEvents {
			same(t, "deadletterreason", m["deadletterreason"], []byte(`"r"`))
		} else {
			checkEventGridMembers(t, e, m, 14)
		}
	}
	testkit.Must(t, testkit.Err3(Binary(e)), "%s in binary mode", e.Raw)
}

func checkEventGridMembers(t testing.TB, e *Envelope, m map[string]json.RawMessage, count int) {
	t.Helper()
	testkit.MustEqual(t, len(m), count, "members: %v", m)
	same(t, "id", plainText(t, m["id"]), e.ID)
	same(t, "subject", plainText(t, m["subject"]), e.Subject)
	same(t, "eventType", plainText(t, m["eventType"]), e.Type)
	same(t, "eventTime", plainText(t, m["eventTime"]), e.Time)
	same(t, "dataVersion", plainText(t, m["dataVersion"]), e.DataVersion)
	same(t, "topic", plainText(t, m["topic"]), []byte(topicID))
	same(t, "metadataVersion", m["metadataVersion"], []byte(`"1"`))
	if e.Data != nil {
		same(t, "data", m["data"], e.Data)
	}
}

func checkCloudEventMembers(t testing.TB, e *Envelope, m map[string]json.RawMessage) {
	t.Helper()
	same(t, "specversion", m["specversion"], []byte(`"1.0"`))
	same(t, "id", plainText(t, m["id"]), e.ID)
	same(t, "type", plainText(t, m["type"]), e.Type)
	same(t, "data", m["data"], e.Data)
	if source := plainText(t, m["source"]); e.Form == EventGridForm {
		same(t, "source", source, []byte(topicID))
	}
	if s, ok := parseStamp(plainText(t, m["time"])); m["time"] != nil && (!ok || !s.strict) {
		t.Fatalf("time is %s", m["time"])
	}
}

// FuzzScan: nothing makes it panic, nor what is done with an envelope afterwards.
func FuzzScan(f *testing.F) {
	for _, stored := range []string{gridEvent, cloudEvent, `{"specversion":"1.0","id":"1","source":"/s","type":"t","x":[1],"data_base64":"!"}`, `{"id":"1","data":`, `{"data":{`} {
		f.Add(byte(EventGridForm), []byte(stored), "data.a")
		f.Add(byte(CloudEventForm), []byte(stored), "x")
	}
	f.Fuzz(func(t *testing.T, form byte, stored []byte, path string) {
		e := Envelope{Topic: topicID}
		if err := e.Scan(Form(form), stored); err != nil {
			return
		}
		if raw := e.Field(path); raw != nil && utf8.ValidString(path) && isValid(stored) && !isValid(raw) {
			t.Fatalf("%q of %q is %q", path, stored, raw)
		}
		for _, out := range fuzzKinds {
			written, err := AppendEvent(nil, &e, out)
			if err == nil && isValid(stored) && !isValid(written) {
				t.Fatalf("%q was written as %q", stored, written)
			}
			_, _ = AppendDeadLetter(nil, &e, out, DeadLetter{})
		}
		_, _, _ = Binary(&e)
	})
}

// FuzzFromHub: whatever stands in a hub becomes an event that can be delivered.
func FuzzFromHub(f *testing.F) {
	for _, body := range append(jsonSeeds, cloudEvent, gridEvent, "\x00\xff") {
		for _, contentType := range []string{"", "application/json", "application/cloudevents+json", "text/plain", "\x00"} {
			f.Add([]byte(body), contentType, "key", "cloudEvents:subject", "s")
		}
	}
	f.Add([]byte("1"), "", "", "cloudEvents_time", "now")
	f.Add([]byte("1"), "", "", "cloudEvents:data", "x")
	f.Fuzz(func(t *testing.T, body []byte, contentType, key, property, value string) {
		for _, properties := range []map[string]any{nil, {property: value}, {"cloudEvents:specversion": "1.0", property: value}} {
			stored, err := FromHub(nil, hubEvent(event.Event{Body: body, ContentType: contentType, Key: key, Properties: properties}))
			testkit.Must(t, err)
			m := members(t, stored)
			e := Envelope{Topic: topicID}
			testkit.Must(t, e.Scan(CloudEventForm, stored), "%s", stored)
			if len(e.ID) == 0 || len(e.Type) == 0 || len(e.Source) == 0 || len(e.Time) == 0 {
				t.Fatalf("%s lacks something", stored)
			}
			checkCloudEventMembers(t, &e, m)
			// What we write we would take.
			testkit.Must(t, testkit.Err(Read(publish(CloudEvents, mediaCloudEvent, string(stored)))), "%s", stored)
			written := testkit.Value(AppendEvent(nil, &e, EventGrid))(t)
			checkEventGridMembers(t, &e, members(t, written), 8)
		}
	})
}

// FuzzBinaryMode: what comes in by headers goes out by headers as it came.
func FuzzBinaryMode(f *testing.F) {
	f.Add("subject", "Euro%20%E2%82%AC", "application/json", []byte(`{"a":1}`))
	f.Add("x", `"a \"b\" %22"`, "text/plain", []byte("hello"))
	f.Add("id", "", "application/octet-stream", []byte{0, 255})
	f.Add("datacontenttype", "x", "a/b+json", []byte("1"))
	f.Fuzz(func(t *testing.T, name, value, contentType string, body []byte) {
		p := clouds(string(body))
		p.Header = http.Header{"Ce-Id": {"1"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}, "Ce-Specversion": {"1.0"}, "Content-Type": {contentType}}
		p.Header.Set("ce-"+name, value)
		events, err := Read(p)
		if err != nil {
			checkRefusal(t, err, body)
			return
		}
		e := Envelope{Topic: topicID}
		testkit.Must(t, e.Scan(CloudEventForm, events[0]), "%s", events[0])
		checkCloudEventMembers(t, &e, members(t, e.Raw))
		header, data, err := Binary(&e)
		testkit.Must(t, err)
		if !isJSON(mediaType(contentType)) {
			same(t, "the body", data, body)
		}
		p.Header, p.Body = header, data
		again := testkit.Value(Read(p))(t)
		testkit.MustEqual(t, len(again), 1, "%v with %q", header, data)
		if want := strings.NewReplacer(`,"`+strings.ToLower(name)+`":""`, "").Replace(string(events[0])); string(again[0]) != string(events[0]) && string(again[0]) != want {
			t.Fatalf("came back as %s, was %s", again[0], events[0])
		}
	})
}
