package schema

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	gridEvent  = `{"id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":{"a":1}}`
	cloudEvent = `{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1}}`
)

// binaryHeader has what binary mode needs.
func binaryHeader(more ...string) http.Header {
	h := http.Header{}
	for name, value := range map[string]string{"ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0"} {
		h.Set(name, value)
	}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

// G12: reference §3.
func TestContentTypesOfPublications(t *testing.T) {
	ce := binaryHeader()
	for _, c := range []struct {
		name        string
		kind        Kind
		contentType string
		header      http.Header
		body        string
		status      int    // 0: taken
		code        string // of the refusal
	}{
		{"events as Go's and JavaScript's clients send them", EventGrid, "application/json", nil, "[" + gridEvent + "]", 0, ""},
		{"events as Python's client sends them", EventGrid, "application/json; charset=utf-8", nil, "[" + gridEvent + "]", 0, ""},
		{"any charset", EventGrid, "Application/JSON;charset=iso-8859-1", nil, "[" + gridEvent + "]", 0, ""},
		{"a lone event", EventGrid, "application/json", nil, gridEvent, 0, ""},
		{"curl -d of Event Grid's examples", EventGrid, "application/x-www-form-urlencoded", nil, "[" + gridEvent + "]", 0, ""},
		{"no content type", EventGrid, "", nil, "[" + gridEvent + "]", 0, ""},
		{"XML", EventGrid, "application/xml", nil, "<event/>", 415, codeContentType},
		{"a batch of CloudEvents for an Event Grid topic", EventGrid, "application/cloudevents-batch+json", nil, "[" + cloudEvent + "]", 415, codeContentType},
		{"custom events", Custom, "application/json", nil, `[{"x":1}]`, 0, ""},
		{"a lone custom event", Custom, "application/json", nil, `{"x":1}`, 0, ""},

		{"one structured CloudEvent", CloudEvents, "application/cloudevents+json; charset=utf-8", nil, cloudEvent, 0, ""},
		{"an array as one CloudEvent", CloudEvents, "application/cloudevents+json", nil, "[" + cloudEvent + "]", 400, codeJSON},
		{"a batch as SDKs send it", CloudEvents, "application/cloudevents-batch+json; charset=utf-8", nil, "[" + cloudEvent + "," + cloudEvent + "]", 0, ""},
		{"one CloudEvent as a batch", CloudEvents, "application/cloudevents-batch+json", nil, cloudEvent, 400, codeJSON},
		{"one CloudEvent as JSON", CloudEvents, "application/json", nil, cloudEvent, 0, ""},
		{"an array of CloudEvents as JSON", CloudEvents, "application/json", nil, "[" + cloudEvent + "]", 0, ""},
		{"no content type for CloudEvents", CloudEvents, "", nil, cloudEvent, 415, codeContentType},
		{"text for CloudEvents", CloudEvents, "text/plain", nil, cloudEvent, 415, codeContentType},
		{"CloudEvents that are not JSON", CloudEvents, "application/cloudevents+avro", nil, "x", 415, codeContentType},

		{"binary mode with JSON", CloudEvents, "application/json", ce, `{"a":1}`, 0, ""},
		{"binary mode with text", CloudEvents, "text/plain", ce, "hello", 0, ""},
		{"binary mode and structured mode at once", CloudEvents, "application/cloudevents+json", ce, cloudEvent, 400, codeHeader},
		{"binary mode and a batch at once", CloudEvents, "application/cloudevents-batch+json", ce, "[" + cloudEvent + "]", 400, codeHeader},
		{"binary mode without a content type", CloudEvents, "", ce, "x", 415, codeContentType},
		{"binary mode without a body", CloudEvents, "application/json", ce, "", 400, codeJSON},
		{"no body", EventGrid, "application/json", nil, "", 400, codeJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := publish(c.kind, c.contentType, c.body)
			for name, values := range c.header {
				p.Header[name] = values
			}
			if c.status == 0 {
				mustRead(t, p)
				return
			}
			if err := refused(t, p); err.Status != c.status || err.Code != c.code {
				t.Errorf("refused with %d %s: %s; want %d %s", err.Status, err.Code, err, c.status, c.code)
			}
		})
	}
	err := refused(t, publish(CloudEvents, "text/plain", "x"))
	if !strings.Contains(err.Message, mediaCloudEvent) || !strings.Contains(err.Message, mediaBatch) {
		t.Errorf("the refusal does not name what is taken: %s", err)
	}
}

// G12: the namespaces' publish call takes nothing but CloudEvents.
func TestNamespacesTakeCloudEventsOnly(t *testing.T) {
	for contentType, want := range map[string]int{
		"application/cloudevents+json; charset=utf-8": 0, "application/json": 415, "text/plain": 415,
	} {
		t.Run(contentType, func(t *testing.T) {
			p := publish(CloudEvents, contentType, cloudEvent)
			p.CloudEventsOnly = true
			if _, err := Read(p); (err == nil) != (want == 0) {
				t.Errorf("%s: %v", contentType, err)
			}
		})
	}
	p := clouds(`{"a":1}`)
	p.CloudEventsOnly, p.Header = true, binaryHeader("Content-Type", "application/json")
	mustRead(t, p)
	p = grid(gridEvent)
	p.CloudEventsOnly = true
	if err := refused(t, p); err.Status != 415 {
		t.Errorf("an Event Grid topic: %+v", err)
	}
}

// G12: reference §4.
func TestPublicationsAreBounded(t *testing.T) {
	p := grid("[" + strings.Repeat(gridEvent+",", 4999) + gridEvent + "]")
	testkit.Equal(t, len(mustRead(t, p)), 5000, "events were stored")
	p.Body = []byte("[" + strings.Repeat(gridEvent+",", 5000) + gridEvent + "]")
	if err := refused(t, p); err.Status != 413 || err.Code != codeTooLarge {
		t.Errorf("5,001 events: %+v", err)
	}
	large := func(n int) string {
		return gridEvent[:len(gridEvent)-len(`{"a":1}}`)] + `"` + strings.Repeat("x", n-len(gridEvent)+len(`{"a":1}`)-2) + `"}`
	}
	testkit.MustEqual(t, len(large(1<<20)), 1<<20, "bytes")
	mustRead(t, grid("["+large(1<<20)+"]"))
	err := refused(t, grid("["+gridEvent+","+large(1<<20+1)+"]"))
	if err.Status != 413 || err.Code != codeTooLarge || !strings.HasPrefix(err.Message, "events[1]: ") {
		t.Errorf("a large event: %+v", err)
	}
	p = grid("[" + gridEvent + "," + gridEvent + "]")
	p.MaxEvents, p.MaxEventBytes = 2, len(gridEvent)
	mustRead(t, p)
	p.MaxEventBytes--
	if err := refused(t, p); err.Status != 413 {
		t.Errorf("a smaller limit: %+v", err)
	}
	p = clouds(strings.Repeat("x", 100))
	p.Header, p.MaxEventBytes = binaryHeader("Content-Type", "text/plain"), 100
	if err := refused(t, p); err.Status != 413 {
		t.Errorf("binary mode: %+v", err)
	}
}

// G12: reference §5. A publication is taken or refused as a whole, and its sender told where to
// look.
func TestWhatIsNoJSONIsRefused(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"text", `hello`, "begins with '['"},
		{"a number", `42`, "begins with '['"},
		{"a string in the array", `["x"]`, "events[0]: the topic takes EventGridSchema: a JSON object"},
		{"an array in the array", `[[]]`, "events[0]"},
		{"an array that is not closed", `[` + gridEvent, "not valid JSON at byte 91"},
		{"an event that is not closed", `[` + gridEvent + `,{"id":"2"`, "events[1]: the body is not valid JSON at byte 101"},
		{"a comma too many", `[` + gridEvent + `,]`, "events[1]"},
		{"something behind", `[` + gridEvent + `] x`, "not valid JSON at byte 93"},
		{"text that is no UTF-8", `[{"id":"` + "\xff" + `"}]`, "events[0]: the body is not valid JSON at byte 8: a string is not valid UTF-8"},
		{"data that is no JSON", `[{"data":{a:1}}]`, "events[0]: the body is not valid JSON at byte 10"},
		{"a deep event", `[{"data":` + strings.Repeat("[", 10000), "levels deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := refused(t, grid(c.body))
			if err.Status != 400 || err.Code != codeJSON || !strings.Contains(err.Message, c.want) {
				t.Errorf("%s: %+v; want %q", c.name, err, c.want)
			}
		})
	}
}

func TestAnEmptyArrayHasNoEvents(t *testing.T) {
	for _, p := range []Publication{grid(" [ ] "), clouds("[]"), publish(Custom, "application/json", "[]")} {
		testkit.Equal(t, len(mustRead(t, p)), 0, "%s", p.Kind)
	}
}

func TestRefusalsAreShort(t *testing.T) {
	long := strings.Repeat("ä", 100000)
	for _, body := range []string{`[{"` + long + `":1}]`, `[{"id":"1","subject":"","eventType":"t","eventTime":"` + long + `"}]`} {
		if err := refused(t, grid(body)); len(err.Message) > 400 {
			t.Errorf("a refusal of %d bytes", len(err.Message))
		}
	}
}
