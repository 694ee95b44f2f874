package poison

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F4: in a topic a poison event is an event like any other.
func TestAPoisonEventInATopic(t *testing.T) {
	for form, want := range map[schema.Form]string{
		schema.EventGridForm: `{"id":"resize/images/3/1841","subject":"functions/resize/partitions/3/sequences/1841","eventType":"Eventyard.EventPoisoned",` +
			`"eventTime":"2026-11-15T12:00:00.123Z","dataVersion":"1.0","data":`,
		schema.CloudEventForm: `{"specversion":"1.0","id":"resize/images/3/1841","source":"/hubs/images","type":"Eventyard.EventPoisoned",` +
			`"subject":"functions/resize/partitions/3/sequences/1841","time":"2026-11-15T12:00:00.123Z","datacontenttype":"application/json","data":`,
	} {
		t.Run(form.String(), func(t *testing.T) {
			b := testkit.Value(poisonEvent().Stored(form))(t)
			if !strings.HasPrefix(string(b), want) {
				t.Errorf("got %s", b)
			}
			var e schema.Envelope
			testkit.Must(t, e.Scan(form, b))
			const data = `{"function":"resize","hub":"images","group":"resizer","partition":"3","sequence":1841,"offset":"774411",` +
				`"enqueued":"2026-11-15T11:59:00.123Z","key":"customer-42","reason":"no such image","stack":"goroutine 1","attempts":5,"deaths":1,` +
				`"instance":"host-1","contentType":"application/json","subject":"image","messageId":"m","correlationId":7,` +
				`"properties":{"poison-level":"high","size":7},"system":{"reply-to":"here","x-opt-mine":1},"body":{"a":1}}`
			testkit.Diff(t, data, string(e.Data))
			for _, out := range []schema.Kind{schema.EventGrid, schema.CloudEvents} {
				if form == schema.CloudEventForm && out == schema.EventGrid {
					continue
				}
				if delivered, err := schema.AppendEvent(nil, &e, out); err != nil || !json.Valid(delivered) {
					t.Errorf("delivered as %s: %s, %v", out, delivered, err)
				}
			}
		})
	}
}

func TestTheBodyOfAPoisonEventInATopic(t *testing.T) {
	for _, test := range []struct {
		name  string
		event event.Event
		want  string
	}{
		{"JSON stays JSON", event.Text(`[1,"<&>"]`), `"body":[1,"<&>"]`},
		{"also where its type says otherwise", event.Event{Body: []byte(`{}`), ContentType: "text/plain"}, `"body":{}`},
		{"and where it is a CloudEvent", event.Event{Body: []byte(`{"specversion":"1.0","id":"1","source":"s","type":"t"}`), ContentType: "application/cloudevents+json"},
			`"body":{"specversion":"1.0","id":"1","source":"s","type":"t"}`},
		{"bytes are base64", event.Bytes([]byte{0xca, 0xfe}), `"bodyBase64":"yv4="`},
		{"JSON with broken text too", event.Bytes([]byte("\"\xff\"")), `"bodyBase64":"Iv8i"`},
		{"a value is JSON", event.Event{Value: event.Map{{Key: "a", Value: int32(1)}}}, `"body":{"a":1}`},
		{"a sequence of lists too", event.Event{Value: []any{[]any{"a"}, []any{nil}}}, `"body":[["a"],[null]]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := poisonEvent()
			l.Event = test.event
			b := testkit.Value(l.JSON())(t)
			testkit.Slices(t, []any{json.Valid(b), bytes.Contains(b, []byte(test.want+"}}"))}, []any{true, true})
		})
	}
	l := poisonEvent()
	l.Event = event.Bytes(nil)
	if b, err := l.JSON(); err != nil || bytes.Contains(b, []byte(`"body`)) {
		t.Errorf("an empty body: %s, %v", b, err)
	}
}

// F4: a poison event that a topic does not take would keep its partition standing for good.
func TestAPoisonEventFitsIntoATopic(t *testing.T) {
	stored := func(l Record) ([]byte, error) { return l.Stored(schema.CloudEventForm) }
	for _, test := range []struct {
		name       string
		write      func(Record) ([]byte, error)
		most       int
		body       int
		properties int
		wants      string
		lacks      string
	}{
		{"all of it", stored, maxStored, 1000, 1000, `"bodyBase64":"/////`, `"shortened"`},
		{"without properties where they are too large", stored, maxStored, 1<<20 - 1000, 60_000, `"shortened":true`, `"large"`},
		{"without the event where that is", stored, maxStored, 1<<20 + 200_000, 10, `"reference":true`, `"body`},
		{"published likewise without properties", Record.JSON, maxPublished, 700_000, 60_000, `"shortened":true`, `"large"`},
		{"published without the event", Record.JSON, maxPublished, 800_000, 10, `"reference":true`, `"body`},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := poisonEvent()
			l.Event.Body = bytes.Repeat([]byte{0xff}, test.body)
			l.Event.Properties["large"] = strings.Repeat("\x00", test.properties)
			l.Reason = strings.Repeat("\x01", 1<<20)
			b, err := test.write(l)
			if err != nil || len(b) > test.most || !json.Valid(b) {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			if !bytes.Contains(b, []byte(test.wants)) || bytes.Contains(b, []byte(test.lacks)) || !bytes.Contains(b, []byte(`"hub":"images"`)) {
				t.Errorf("%.900s", b)
			}
		})
	}
	l := poisonEvent()
	l.Event.Subject, l.Event.MessageID, l.Event.Key = strings.Repeat("\x01", 1<<20), strings.Repeat("\x01", 1<<20), strings.Repeat("\x01", 1<<16-1)
	if b, err := l.JSON(); err != nil || len(b) > maxPublished || !bytes.Contains(b, []byte(`"reason":"too large`)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
